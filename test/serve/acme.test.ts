/** Certificates from a real ACME server (pebble, of Let's Encrypt), for the executable on ports of the test's own. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import type { Subprocess } from "bun";
import { freePort } from "../support/ports.ts";
import { initializedDirectory, ServerProcess, temporaryFolder, until } from "../support/server.ts";
import { installedProgram } from "../support/skipped.ts";
import { preparedFolder } from "../support/toolchains.ts";

const version = "v2.7.0";
const module = "github.com/letsencrypt/pebble/v2/cmd";
const programs = installedProgram("go")
  ? preparedFolder(`flagkeep-pebble-${version}`, [
      "sh",
      "-c",
      `GOBIN=$PWD go install ${module}/pebble@${version} ${module}/pebble-challtestsrv@${version}`,
    ])
  : undefined;
if (programs === undefined) console.log("SKIPPED certificates by ACME: pebble cannot be built here");

const domain = "flags.example.com";
const folder = temporaryFolder();
const running: Subprocess[] = [];
const ports = {} as Record<"acme" | "manage" | "http" | "https" | "dns", number>;
const extraAuthority = join(folder, "authority.pem");
/** Of certificates: due after two thirds of it. */
const validSeconds = 15;

function start(command: string[]) {
  const env = { ...process.env, PEBBLE_VA_NOSLEEP: "1", PEBBLE_WFE_NONCEREJECT: "0" };
  running.push(Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: "ignore", env }));
}

/** The certificate that a client is shown. */
function shown(): Promise<{ serial: string; names: string } | undefined> {
  return new Promise((resolve) => {
    const socket = connect(
      { host: "127.0.0.1", port: ports.https, servername: domain, rejectUnauthorized: false },
      () => {
        const { serialNumber, subjectaltname } = socket.getPeerCertificate();
        socket.destroy();
        resolve({ serial: serialNumber, names: String(subjectaltname) });
      },
    );
    socket.on("error", () => resolve(undefined));
  });
}

const get = (path: string, init: RequestInit = {}) =>
  fetch(`https://127.0.0.1:${ports.https}${path}`, {
    ...init,
    tls: { rejectUnauthorized: false },
  } as RequestInit);

describe.skipIf(programs === undefined)("a certificate by ACME", () => {
  let directory: Awaited<ReturnType<typeof initializedDirectory>>;
  const settings = () => [
    "--acme-domain",
    domain,
    "--acme-directory",
    `https://127.0.0.1:${ports.acme}/dir`,
    "--acme-http-port",
    String(ports.http),
    "--https-port",
    String(ports.https),
    "--https-host",
    "127.0.0.1",
    "--acme-email",
    "ops@example.com",
  ];
  beforeAll(async () => {
    for (const name of ["acme", "manage", "http", "https", "dns"] as const) ports[name] = freePort();
    const key = join(folder, "key.pem");
    Bun.spawnSync(
      [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-keyout",
        key,
        "-out",
        extraAuthority,
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
      ],
      { stdout: "ignore", stderr: "ignore" },
    );
    const config = {
      pebble: {
        listenAddress: `127.0.0.1:${ports.acme}`,
        managementListenAddress: `127.0.0.1:${ports.manage}`,
        certificate: extraAuthority,
        privateKey: key,
        httpPort: ports.http,
        tlsPort: ports.https,
        profiles: { default: { description: "short", validityPeriod: validSeconds } },
      },
    };
    writeFileSync(join(folder, "pebble.json"), JSON.stringify(config));
    start([
      join(programs!, "pebble-challtestsrv"),
      "-defaultIPv4",
      "127.0.0.1",
      "-defaultIPv6",
      "",
      "-dns01",
      `127.0.0.1:${ports.dns}`,
      "-management",
      "",
      "-http01",
      "",
      "-https01",
      "",
      "-tlsalpn01",
      "",
      "-doh",
      "",
    ]);
    start([
      join(programs!, "pebble"),
      "-config",
      join(folder, "pebble.json"),
      "-dnsserver",
      `127.0.0.1:${ports.dns}`,
    ]);
    await until(
      async () =>
        (
          await fetch(`https://127.0.0.1:${ports.acme}/dir`, {
            tls: { rejectUnauthorized: false },
          } as RequestInit).catch(() => undefined)
        )?.ok,
      "pebble answers",
    );
    directory = await initializedDirectory();
  }, 120_000);
  afterAll(async () => {
    for (const child of running) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
    if (directory !== undefined) rmSync(directory.dataDir, { recursive: true, force: true });
  });
  const startRun = (workers: number) =>
    ServerProcess.start({
      directory,
      args: [...settings(), "--workers", String(workers)],
      through: ["env", `NODE_EXTRA_CA_CERTS=${extraAuthority}`],
    });

  test.each([1, 3])(
    "is got, served by %i workers, kept for the owner alone, and renewed",
    async (workers) => {
      rmSync(directory.dataDir, { recursive: true });
      directory = await initializedDirectory();
      const server = await startRun(workers);
      try {
        const first = await until(shown, "serving HTTPS");
        expect(first.names).toContain(domain);
        for (const key of ["one", "two"])
          await server.api("/api/projects/1/feature_flags/", { method: "POST", body: { key } });
        const sent = await get("/capture/", {
          method: "POST",
          body: JSON.stringify({ api_key: server.token, event: "over tls", distinct_id: "kim" }),
        });
        expect(sent.status).toBe(200);
        const [event] = await server.eventsWhenStored(1);
        expect(event!.properties.$ip).toBe("127.0.0.1");
        // A worker forwards this request, with the scheme of its connection.
        const headers = { Authorization: `Bearer ${directory.initialized.personal_api_key}` };
        const left = await get("/api/projects/1/feature_flags/?limit=1", { headers });
        expect(((await left.json()) as { next: string }).next).toStartWith(
          `https://127.0.0.1:${ports.https}/`,
        );
        // Everything else on the plain port is sent on, to no other name.
        const plain = await fetch(`http://127.0.0.1:${ports.http}/flags/?v=2`, {
          redirect: "manual",
          headers: { Host: "evil.example" },
        });
        expect([plain.status, plain.headers.get("location")]).toEqual([
          308,
          `https://${domain}:${ports.https}/flags/?v=2`,
        ]);
        const place = join(directory.dataDir, "certificates");
        expect(statSync(place).mode & 0o777).toBe(0o700);
        for (const name of ["account.key", "certificate.pem"]) {
          expect(statSync(join(place, name)).mode & 0o777).toBe(0o600);
        }
        const second = await until(async () => {
          const now = await shown();
          return now !== undefined && now.serial !== first.serial && now;
        }, "it is renewed");
        // By every worker: the system gives each new connection to any of them.
        await until(async () => {
          const all = await Promise.all(Array.from({ length: 16 }, shown));
          return all.every((one) => one !== undefined && one.serial !== first.serial);
        }, "every worker has the new one");
        expect((await get("/")).status).toBe(200);
        expect(JSON.stringify(server.logs)).not.toContain("PRIVATE KEY");
        expect(await server.stop()).toBe(0);
        expect(readFileSync(join(place, "certificate.pem"), "utf8")).toContain("BEGIN CERTIFICATE");
        expect(second.names).toContain(domain);
      } finally {
        await server[Symbol.asyncDispose]();
      }
    },
    120_000,
  );

  test("an authority that does not respond: one line, and the server continues without HTTPS", async () => {
    rmSync(join(directory.dataDir, "certificates"), { recursive: true, force: true });
    await using server = await ServerProcess.start({
      directory,
      args: [...settings(), "--acme-directory", "https://127.0.0.1:9/dir"],
    });
    const line = await until(
      () => server.logs.find(({ msg }) => String(msg).startsWith("failed to obtain a certificate")),
      "the log tells",
    );
    expect(line).toMatchObject({
      level: "warn",
      domains: [domain],
      error: "https://127.0.0.1:9/dir: connection refused",
    });
    expect((await server.capture({ event: "x", distinct_id: "kim" })).status).toBe(200);
    expect(await shown()).toBeUndefined();
    expect(existsSync(join(directory.dataDir, "certificates", "certificate.pem"))).toBe(false);
  }, 60_000);

  test("a port in use: one line, and the server continues without HTTPS", async () => {
    const other = Bun.serve({ hostname: "127.0.0.1", port: ports.http, fetch: () => new Response("other") });
    try {
      await using server = await ServerProcess.start({ directory, args: settings() });
      await until(
        () => server.logs.find(({ msg }) => String(msg).includes(`failed to listen on port ${ports.http}`)),
        "the log tells",
      );
      expect((await server.capture({ event: "x", distinct_id: "kim" })).status).toBe(200);
    } finally {
      await other.stop(true);
    }
  }, 60_000);
});
