/** The recipes for reverse proxies, run by the proxies themselves: TLS, a path prefix, addresses, streams. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Subprocess } from "bun";
import { parse } from "yaml";
import { chromiumPath, startBrowser } from "../support/browser.ts";
import { freePort } from "../support/ports.ts";
import { ServerProcess, temporaryFolder, until } from "../support/server.ts";
import { type Component, installedProgram, testWhen } from "../support/skipped.ts";

const page = await Bun.file(join(import.meta.dir, "../../docs/operations/https.md")).text();
const folder = temporaryFolder();
let flagkeep: ServerProcess;
const running: Subprocess[] = [];
beforeAll(async () => {
  flagkeep = await ServerProcess.start({ args: ["--trusted-proxies", "127.0.0.1,::1"] });
});
afterAll(async () => {
  for (const child of running) child.kill("SIGTERM");
  await Promise.all(running.map((child) => child.exited));
  await flagkeep[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** The recipe below a line of `https.md`, for the test's server. */
function recipe(before: string): string {
  const from = page.indexOf(before);
  const code = /```\w*\n(.*?)```/s.exec(page.slice(from))?.[1];
  if (from < 0 || code === undefined) throw new Error(`The page has no recipe after ${before}.`);
  return code
    .replace("http://127.0.0.1:8000", flagkeep.url)
    .replace("127.0.0.1:8000", new URL(flagkeep.url).host);
}

async function start(command: string[], env: Record<string, string>, address: string): Promise<void> {
  const child = Bun.spawn(command, {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
    env: { ...process.env, ...env },
  });
  running.push(child);
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`${command[0]} ended with ${child.exitCode}.`);
    return (await get(`${address}/`).catch(() => undefined))?.ok;
  }, `${command[0]} passes requests on`);
}

/** Certificates are of the test's own making. */
const get = (url: string, init: RequestInit = {}) =>
  fetch(url, { ...init, tls: { rejectUnauthorized: false } } as RequestInit);

const settingsOf = {
  nginx: async (port: number) => {
    const key = join(folder, "key.pem");
    const pem = join(folder, "cert.pem");
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
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
        pem,
        ...subject,
      ],
      {
        stdout: "ignore",
        stderr: "ignore",
      },
    );
    const server = recipe("nginx, with TLS")
      .replace("listen 443 ssl", `listen 127.0.0.1:${port} ssl`)
      .replace("flags.example.com;", "localhost;")
      .replace("/etc/ssl/flags.example.com.pem", pem)
      .replace("/etc/ssl/flags.example.com.key", key);
    const place = join(folder, "nginx");
    mkdirSync(place);
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (name) => `${name}_temp_path ${place}/${name};`,
    );
    const text = `daemon off; pid ${place}/pid; error_log ${place}/error.log; events {}
      http { access_log off; ${temporary.join(" ")} ${server} }`;
    await Bun.write(join(place, "nginx.conf"), text);
    return { command: ["nginx", "-p", place, "-c", join(place, "nginx.conf")], env: {} };
  },
  caddy: async (port: number) => {
    const text = recipe("Caddy obtains a certificate").replace(
      "flags.example.com {",
      `{\n  admin off\n  skip_install_trust\n  auto_https disable_redirects\n}\nhttps://localhost:${port} {\n  tls internal`,
    );
    await Bun.write(join(folder, "Caddyfile"), text);
    return {
      command: ["caddy", "run", "--adapter", "caddyfile", "--config", join(folder, "Caddyfile")],
      env: { HOME: folder, XDG_DATA_HOME: join(folder, "caddy"), XDG_CONFIG_HOME: join(folder, "caddy") },
    };
  },
};

const needs: Record<keyof typeof settingsOf, Component[]> = { nginx: ["nginx", "openssl"], caddy: ["caddy"] };

for (const name of ["nginx", "caddy"] as const) {
  const missing = needs[name].find((program) => installedProgram(program) === undefined);
  const isThere = missing === undefined;
  if (!isThere) console.log(`SKIPPED the recipe for ${name}: no ${missing}`);
  describe.skipIf(!isThere)(`${name} as the page sets it up`, () => {
    let base: string;
    beforeAll(async () => {
      const port = freePort();
      const { command, env } = await settingsOf[name](port);
      base = `https://localhost:${port}/flags`;
      await start(command, { PATH: `${process.env.PATH}:/usr/sbin`, ...env }, base);
    }, 60_000);
    const api = (path: string, init: RequestInit = {}) =>
      get(path.startsWith("http") ? path : base + path, {
        ...init,
        headers: { Authorization: `Bearer ${flagkeep.initialized.personal_api_key}`, ...init.headers },
      });

    test("events and flags pass, packed and large ones too", async () => {
      const item = { api_key: flagkeep.token, distinct_id: "kim" };
      const one = await get(`${base}/capture/`, {
        method: "POST",
        body: JSON.stringify({ ...item, event: `one-${name}` }),
      });
      expect([one.status, await one.json()]).toEqual([200, { status: "Ok" }]);
      const noise = Buffer.from(crypto.getRandomValues(new Uint8Array(60_000))).toString("base64");
      const batch = Array.from({ length: 200 }, () => ({
        event: `many-${name}`,
        distinct_id: "kim",
        properties: { noise },
      }));
      const body = gzipSync(JSON.stringify({ api_key: flagkeep.token, batch }));
      expect(body.length).toBeGreaterThan(100_000);
      const many = await get(`${base}/batch/`, {
        method: "POST",
        body,
        headers: { "Content-Encoding": "gzip" },
      });
      expect(many.status).toBe(200);
      const large = JSON.stringify({
        ...item,
        event: `large-${name}`,
        properties: { noise: "x".repeat(15_000_000) },
      });
      expect((await get(`${base}/capture/`, { method: "POST", body: large })).status).toBe(200);
      await flagkeep.eventsWhenStored(200, `event=many-${name}`);
      const flags = await get(`${base}/flags/?v=2`, { method: "POST", body: JSON.stringify(item) });
      expect(await flags.json()).toMatchObject({ flags: {}, errorsWhileComputingFlags: false });
    }, 60_000);

    test("the client's address is the proxy's word, never the client's own", async () => {
      const event = `address-${name}`;
      await get(`${base}/capture/`, {
        method: "POST",
        body: JSON.stringify({ api_key: flagkeep.token, event, distinct_id: "kim" }),
        headers: { "X-Forwarded-For": "203.0.113.9", Forwarded: "for=203.0.113.9" },
      });
      const [stored] = await flagkeep.eventsWhenStored(1, `event=${event}`);
      expect(["127.0.0.1", "::1"]).toContain(stored!.properties.$ip as string);
    }, 30_000);

    test("links begin with the address and prefix that clients know, and lead back through the proxy", async () => {
      for (const key of ["a", "b"]) {
        const created = await api("/api/projects/1/feature_flags/", {
          method: "POST",
          body: JSON.stringify({ key: `${name}-${key}` }),
          headers: { "Content-Type": "application/json" },
        });
        expect(created.status).toBe(201);
      }
      const page = (await (await api("/api/projects/1/feature_flags/?limit=1")).json()) as { next: string };
      expect(page.next).toStartWith(`${base}/api/projects/1/feature_flags/?`);
      expect((await api(page.next)).status).toBe(200);
    });

    test("the documentation and the streams of OpenFeature are found under the prefix", async () => {
      const html = await (await get(`${base}/docs`)).text();
      const link = /href="([^"#]+)"/.exec(html)![1]!;
      const schema = await get(new URL(link, `${base}/docs`).href);
      const { servers } = (await schema.json()) as { servers: { url: string }[] };
      expect(servers.map(({ url }) => new URL(url, schema.url).href)).toEqual([base]);
      const flags = await get(`${base}/ofrep/v1/evaluate/flags`, {
        method: "POST",
        body: JSON.stringify({ context: { targetingKey: "kim" } }),
        headers: { Authorization: `Bearer ${flagkeep.token}`, "Content-Type": "application/json" },
      });
      const { eventStreams } = (await flags.json()) as {
        eventStreams: { endpoint: { requestUri: string } }[];
      };
      const { requestUri } = eventStreams[0]!.endpoint;
      expect(new URL(requestUri, base).href).toStartWith(`${base}/ofrep/v1/events?key=`);
    });

    test("the console and its files are found under the prefix", async () => {
      const page = await get(`${base}/console/`);
      const html = await page.text();
      expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
      const files = [...html.matchAll(/(?:src|href)="([^"#]+\.(?:js|css|svg))"/g)].map(([, file]) => file!);
      expect(files.length).toBeGreaterThan(1);
      for (const file of files) expect((await get(new URL(file, `${base}/console/`).href)).status).toBe(200);
      const script = files.find((file) => /index-\w+\.js$/.test(file))!;
      const text = await (await get(new URL(script, base).href)).text();
      const late = [...text.matchAll(/["'`]([^"'`]*\/console\/a\/[^"'`]+\.js)["'`]/g)].map(
        ([, file]) => file!,
      );
      expect(late.length).toBeGreaterThan(0);
      for (const file of late) expect((await get(new URL(file, base).href)).status).toBe(200);
      const redirect = await get(`${base}/console`, { redirect: "manual" });
      expect(new URL(redirect.headers.get("location")!, `${base}/console`).href).toBe(`${base}/console/`);
    });

    const hasBrowser = testWhen(chromiumPath !== undefined, `the console behind ${name}`, "no Chromium");
    hasBrowser(
      "signing in to the console leads to a flag",
      async () => {
        const browser = await startBrowser();
        try {
          const context = await browser.newContext({ ignoreHTTPSErrors: true });
          const page = await context.newPage();
          await page.goto(`${base}/console/`);
          await page.getByRole("button", { name: "Use a personal key instead" }).click();
          await page.getByLabel("Personal key").fill(flagkeep.initialized.personal_api_key);
          await page.keyboard.press("Enter");
          await page.getByRole("heading", { level: 1, name: "Flags" }).waitFor();
          expect(page.url()).toStartWith(`${base}/console/flags`);
          await page.getByRole("link", { name: `${name}-a` }).click();
          await page.waitForURL(`${base}/console/flags/*`);
          await page.getByRole("heading", { level: 1 }).getByText(`${name}-a`).waitFor();
        } finally {
          await browser.close();
        }
      },
      60_000,
    );

    test("a stream of events is forwarded immediately", async () => {
      const stream = await api("/api/projects/1/events/stream/");
      expect(stream.status).toBe(200);
      const reader = stream.body!.pipeThrough(new TextDecoderStream() as never).getReader();
      const event = `live-${name}`;
      await get(`${base}/capture/`, {
        method: "POST",
        body: JSON.stringify({ api_key: flagkeep.token, event, distinct_id: "kim" }),
      });
      let seen = "";
      while (!seen.includes(event)) {
        const { value, done } = await reader.read();
        if (done) throw new Error(`The stream ended: ${seen}`);
        seen += value;
      }
      await reader.cancel();
    }, 30_000);
  });
}

test("the recipe for Traefik strips one prefix and names one service", () => {
  const { http } = parse(recipe("Traefik (file provider)")) as {
    http: {
      routers: { flagkeep: { rule: string; middlewares: string[]; service: string } };
      middlewares: Record<string, { stripPrefix: { prefixes: string[] } }>;
      services: Record<string, { loadBalancer: { servers: { url: string }[] } }>;
    };
  };
  const { rule, middlewares, service } = http.routers.flagkeep;
  expect(middlewares.map((name) => http.middlewares[name]!.stripPrefix.prefixes)).toEqual([["/flags"]]);
  expect(rule).toContain("PathPrefix(`/flags`)");
  expect(http.services[service]!.loadBalancer.servers).toEqual([{ url: flagkeep.url }]);
});
