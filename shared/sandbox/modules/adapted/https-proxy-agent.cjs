/** Modules load it in case a proxy is configured; the gateway is the only way out of a sandbox. */
module.exports = function HttpsProxyAgent() {
  throw new Error('A proxy cannot be used in a sandbox.');
};
