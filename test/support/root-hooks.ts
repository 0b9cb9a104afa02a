/** Mocha's root hooks: what one run started for all its files ends with it. */
export const mochaHooks = {
  async afterAll(): Promise<void> {
    // Imported late: a run of unit tests alone needs none of it.
    const { stopTestServer } = await import('./test-server.ts');
    await stopTestServer();
  },
};
