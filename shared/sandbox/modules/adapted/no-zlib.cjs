/** For modules that bring a zlib of their own and use it where there is none of Node's. */
module.exports = { default: undefined };
