/** Node's `https`, client side. */
module.exports = require('http-module').moduleOf('https:');
