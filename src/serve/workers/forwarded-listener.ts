/** Listens for requests that workers forward. */

import type { Server } from "bun";
import type { App } from "../../http/app.ts";
import type { Connection } from "../../http/edge-deps.ts";
import { broken, commonOptions } from "../../http/server.ts";
import { listenPrivately } from "../../rpc/server.ts";
import { extractOrigin } from "./forward.ts";

const noConnection: Connection = { peer: () => undefined, allowSilence: () => undefined };

/** Listens on a socket in the working directory, which is the data directory; replaces a stale socket. */
export function listenForwarded(app: App, socketName: string, bodyBytesMax: number): Server<undefined> {
  const connections = new WeakMap<Request, Connection>();
  app.connect((request) => connections.get(request) ?? noConnection);
  return listenPrivately(socketName, () => {
    const server: Server<undefined> = Bun.serve({
      ...commonOptions(bodyBytesMax),
      // The type excludes the idle timeout, which works.
      ...({ unix: socketName } as object as { port: number }),
      fetch(request) {
        const origin = extractOrigin(request);
        const isSecure = origin?.isSecure === true;
        const served = isSecure ? new Request(request.url.replace(/^http:/, "https:"), request) : request;
        connections.set(served, {
          peer: () => origin?.peer ?? undefined,
          allowSilence: (seconds) => server.timeout(request, seconds),
        });
        return app.handle(served).catch(broken);
      },
    });
    return server;
  });
}
