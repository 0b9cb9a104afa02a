/** stripe as scripts get it: over `fetch` unless the script hands in a client of its own. */
const Stripe = require('stripe');

Stripe.createNodeHttpClient = () => Stripe.createFetchHttpClient();
module.exports = Stripe;
