/**
 * axios as scripts get it: its build without Node's `http`, always over `fetch`, which the gateway
 * carries out. It never looks for another way out. What its Node build does differently from
 * `fetch`, and code relies on, is done here.
 */
const axios = require('../../../../node_modules/axios/dist/browser/axios.cjs');

const CLIENT_KEYS = ['cert', 'key', 'pfx'];

axios.defaults.adapter = async function overFetch(config) {
  const agent = config.httpsAgent?.options ?? {};
  if (CLIENT_KEYS.some((name) => agent[name])) {
    throw new axios.AxiosError('Client certificates are not available here.', 'ERR_NOT_SUPPORT');
  }
  try {
    const response = await axios.getAdapter('fetch', config)(config);
    // Node's build answers a Buffer.
    if (response.data instanceof ArrayBuffer) response.data = Buffer.from(response.data);
    return response;
  } catch (error) {
    // And this is its code of a timeout, unless told to be clearer.
    const isLate = error.code === 'ETIMEDOUT' && !config.transitional?.clarifyTimeoutError;
    if (isLate) error.code = 'ECONNABORTED';
    throw error;
  }
};
module.exports = axios;
