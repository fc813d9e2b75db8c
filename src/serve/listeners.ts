/** Where the front listens: http, and https as soon as there is a certificate. */

import type { Server } from "bun";
import type { Config } from "../config/settings.ts";
import { CanNotListen } from "../http/address.ts";
import type { App } from "../http/app.ts";
import { listen } from "../http/server.ts";
import { lapse } from "../lib/time.ts";
import type { Log } from "../log.ts";
import { paths } from "../paths.ts";
import { Certificates } from "./certificates.ts";

/** How long a stop waits for requests that are in flight. */
const inFlightMs = 2_000;

export class Listeners {
  private readonly http: Server<undefined>;
  private https: Server<undefined> | undefined;
  private readonly certificates: Certificates | undefined;

  /** Listens. @throws {CanNotListen} */
  constructor(
    private readonly config: Config,
    private readonly log: Log,
    app: App,
  ) {
    const { host, port } = { host: config.host, port: config.port };
    try {
      this.http = listen(app, { hostname: host, port, bodyBytesMax: config["body-limit"] });
    } catch (error) {
      throw new CanNotListen(host, port, (error as Error).message);
    }
    this.certificates = this.certificatesFor(app);
    this.certificates?.start();
  }

  /** The address to reach it at. */
  get url(): string {
    const { host } = this.config;
    return `http://${host.includes(":") ? `[${host}]` : host}:${this.http.port}`;
  }

  /** Accepts nothing more, and waits a little for what is in flight. */
  async stop(): Promise<void> {
    await this.certificates?.stop();
    await Promise.race([Promise.all([this.http.stop(), this.https?.stop()]), lapse(inFlightMs)]);
    // Whoever is still sending has no answer yet, and sends again.
    await this.https?.stop(true);
    await this.http.stop(true);
  }

  /** Nothing where no names are set for one. */
  private certificatesFor(app: App): Certificates | undefined {
    const { config, log } = this;
    const [host, port] = [config["https-host"], config["https-port"]];
    if (config["acme-domain"].length === 0) return undefined;
    return new Certificates(
      {
        ...{ domains: config["acme-domain"], email: config["acme-email"], host, httpsPort: port },
        directoryUrl: config["acme-directory"],
        httpPort: config["acme-http-port"],
        folder: paths(config["data-dir"]).certificates,
      },
      log,
      (tls) => {
        // Whoever is connected goes on with the one of before.
        void this.https?.stop();
        try {
          this.https = listen(app, { hostname: host, port, bodyBytesMax: config["body-limit"], tls });
          log.info({ domains: config["acme-domain"], port }, "https is served");
        } catch (error) {
          log.warn({ port, error: (error as Error).message }, "https cannot be served; going on without");
        }
      },
    );
  }
}
