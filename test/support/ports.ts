/** Ports for servers that cannot choose one themselves. */

/** Below what systems give to connections and to port 0, so that no one gets it by chance before its server starts. */
const firstPort = 20_000;
const endPort = 32_000;

/** A port of the loopback address that no one listens on; the same one is seldom given twice. */
export function freePort(): number {
  for (;;) {
    const port = firstPort + Math.floor(Math.random() * (endPort - firstPort));
    try {
      Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
      return port;
    } catch (error) {
      if ((error as { code?: string }).code !== "EADDRINUSE") throw error;
    }
  }
}
