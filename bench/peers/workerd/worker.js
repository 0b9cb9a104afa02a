/** The peer of reactions: the same function as in react.ts, served over HTTP by workerd. */
const react = async (req) => ({ raw: { sum: req.args.a + req.args.b } });

export default {
  async fetch(request) {
    const { args } = await request.json();
    return Response.json(await react({ args, configuration: {}, bt: null }));
  },
};
