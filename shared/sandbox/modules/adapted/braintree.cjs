/**
 * braintree as scripts get it: it asks for plain answers, since a sandbox has no `zlib` to unpack
 * them.
 */
const { Http } = require('braintree/lib/braintree/http');

const headersOf = Http.prototype._headers;
Http.prototype._headers = function () {
  const { 'Accept-Encoding': _packed, ...headers } = headersOf.call(this);
  return headers;
};
module.exports = require('braintree');
