/** HTTP listener, and the HTTPS listener once a certificate exists. */

import type { Server } from "bun";
import type { Config } from "../config/settings.ts";
import type { App } from "../http/app.ts";
import { ListenError } from "../http/listen-address.ts";
import { listen } from "../http/server.ts";
import { sleep } from "../lib/time.ts";
import type { Log } from "../log.ts";
import { paths } from "../paths.ts";
import { Certificates } from "./certificates.ts";

/** How long a stop waits for requests in flight. */
const inFlightMs = 2_000;

export class Listeners {
  private readonly http: Server<undefined>;
  private https: Server<undefined> | undefined;
  private readonly certificates: Certificates | undefined;

  /** Starts listening. @throws {ListenError} */
  constructor(
    private readonly config: Config,
    private readonly log: Log,
    app: App,
  ) {
    const { host, port } = { host: config.host, port: config.port };
    try {
      this.http = listen(app, { hostname: host, port, bodyBytesMax: config["body-limit"] });
    } catch (error) {
      throw new ListenError(host, port, (error as Error).message);
    }
    this.certificates = this.certificatesFor(app);
    this.certificates?.start();
  }

  get url(): string {
    const { host } = this.config;
    return `http://${host.includes(":") ? `[${host}]` : host}:${this.http.port}`;
  }

  /** Stops accepting, and waits up to `inFlightMs` for requests in flight. */
  async stop(): Promise<void> {
    await this.certificates?.stop();
    await Promise.race([Promise.all([this.http.stop(), this.https?.stop()]), sleep(inFlightMs)]);
    // Clients that are still sending have no response yet and retry.
    await this.https?.stop(true);
    await this.http.stop(true);
  }

  /** Undefined without configured domains. */
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
        // Open connections keep the previous certificate.
        void this.https?.stop();
        try {
          this.https = listen(app, { hostname: host, port, bodyBytesMax: config["body-limit"], tls });
          log.info({ domains: config["acme-domain"], port }, "serving HTTPS");
        } catch (error) {
          log.warn({ port, error: (error as Error).message }, "failed to serve HTTPS; continuing without it");
        }
      },
    );
  }
}
