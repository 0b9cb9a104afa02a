/** `stream/promises` of the very `stream` that scripts get. */
module.exports = require('node:stream').promises;
