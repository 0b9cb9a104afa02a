/** The module `process`: the object that is also global. */
module.exports = require('node-process').process;
