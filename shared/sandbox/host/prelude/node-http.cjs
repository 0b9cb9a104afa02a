/** Node's `http`, client side: only for destinations that the operator allows without TLS. */
module.exports = require('http-module').moduleOf('http:');
