/** The examples, as they are, against the compiled executable. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { parse } from "yaml";
import { readConfig } from "../../src/config/read.ts";
import { environmentName, type SettingName, settings } from "../../src/config/settings.ts";
import { chromiumPath, startBrowser } from "../support/browser.ts";
import { testWhen } from "../support/skipped.ts";
import { pythonPackage } from "../support/toolchains.ts";
import { server, useServer } from "../support/use-server.ts";

const examples = join(import.meta.dir, "../../examples");

useServer();
beforeAll(async () => {
  const body = { key: "new-checkout", rollout_percentage: 100 };
  const created = await server.api("/api/projects/1/feature_flags/", { method: "POST", body });
  if (created.status !== 201) throw new Error(await created.text());
});

/** What a program printed; it has to end well. */
async function printed(command: string[], env: Record<string, string> = {}): Promise<string> {
  const child = Bun.spawn(command, { stdout: "pipe", stderr: "pipe", env: { ...process.env, ...env } });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

/** Events of this name, once there are as many. */
const stored = (count: number, event: string) =>
  server.eventsWhenStored(count, `event=${encodeURIComponent(event)}&order=seq`);

describe("node", () => {
  test("queries the server, and with the secret key evaluates locally", async () => {
    const app = join(examples, "node/app.mjs");
    const node = Bun.which("node") ?? process.execPath;
    const { api_key: key, secret_api_key: secret } = server.initialized.project;
    expect(await printed([node, app, server.url, key])).toBe("checkout: new\n");
    expect(await printed([node, app, server.url, key, secret])).toBe("checkout: new\n");
    for (const event of await stored(2, "bought")) {
      expect(event).toMatchObject({
        distinct_id: "user-1",
        properties: { price: 12.5, $groups: { company: "acme" } },
        person: { properties: { plan: "pro" } },
      });
    }
    const group = await server.api("/api/projects/1/groups/find/?group_type_index=0&group_key=acme");
    expect(await group.json()).toMatchObject({ group_properties: { seats: 40 } });
  });

  test("has the version of the library that is tested here", async () => {
    const { dependencies } = await Bun.file(join(examples, "node/package.json")).json();
    const { devDependencies } = await Bun.file(join(examples, "../package.json")).json();
    expect(dependencies["posthog-node"]).toBe(devDependencies["posthog-node"]);
  });
});

const requirement = /^posthog==(\S+)$/m.exec(
  readFileSync(join(examples, "python/requirements.txt"), "utf8"),
)!;
const python = pythonPackage("posthog", requirement[1]!);

testWhen(
  python !== undefined,
  "the example for Python",
  "no Python with pip, or no network",
)("python loads history in order and reads it back", async () => {
  const { url, token, initialized } = server;
  const app = join(examples, "python/app.py");
  const output = await printed(["python3", app, url, token, initialized.personal_api_key], {
    PYTHONPATH: python!,
  });
  expect(output).toBe("checkout: new\npaid in 12 months: 186\n");
  const paid = await stored(12, "paid");
  expect(paid.map(({ timestamp }) => timestamp.slice(0, 7))).toEqual([
    "2025-01",
    "2025-01",
    "2025-03",
    "2025-04",
    "2025-05",
    "2025-05",
    "2025-06",
    "2025-07",
    "2025-08",
    "2025-09",
    "2025-10",
    "2025-11",
  ]);
  expect(paid.every(({ historical }) => historical)).toBe(true);
  expect(paid[0]!.person!.properties).toMatchObject({ months: 12 });
});

describe("browser", () => {
  let browser: Browser | undefined;
  afterAll(() => browser?.close());

  testWhen(
    chromiumPath !== undefined,
    "the example for browsers",
    "no Chromium here",
  )("shows the flag, and joins the anonymous visitor with the one who signs in", async () => {
    using site = Bun.serve({
      hostname: "localhost",
      port: 0,
      fetch: ({ url }) =>
        new URL(url).pathname === "/"
          ? new Response(Bun.file(join(examples, "browser/index.html")))
          : new Response(null, { status: 404 }),
    });
    browser = await startBrowser();
    // The library takes a browser that is driven for a robot, and sends nothing.
    const context = await browser.newContext({ userAgent: "Mozilla/5.0 (X11; Linux x86_64) Firefox/150.0" });
    await context.addInitScript("Object.defineProperty(navigator, 'webdriver', { get: () => false })");
    const page = await context.newPage();
    await page.goto(`${site.url}?server=${encodeURIComponent(server.url)}&key=${server.token}`);
    await page.waitForFunction("document.querySelector('#checkout').value === 'new'");
    await page.click("#buy");
    await page.fill("#name", "browser-ann");
    await page.click("#sign-in button");
    const [signedIn] = await stored(1, "signed in");
    expect(signedIn).toMatchObject({
      distinct_id: "browser-ann",
      person: { properties: { plan: "free" } },
    });
    const anonymous = signedIn!.person!.distinct_ids.find((id) => id !== "browser-ann");
    const [bought] = await server.eventsWhenStored(1, `event=bought&distinct_id=${anonymous}`);
    expect(bought!.person!.uuid).toBe(signedIn!.person!.uuid);
  });
});

describe("compose", () => {
  const text = readFileSync(join(examples, "compose/compose.yaml"), "utf8");
  const { services, volumes, networks } = parse(text) as {
    services: Record<string, Record<string, unknown>>;
    volumes: Record<string, unknown>;
    networks: Record<string, { ipam: { config: { subnet: string }[] } }>;
  };
  const dockerfile = readFileSync(join(examples, "../deploy/Dockerfile"), "utf8");
  const flagkeep = services.flagkeep!;
  /** A value as the shell's substitution leaves it when nothing is set. */
  const substituted = (value: unknown) => String(value).replace(/\$\{\w+:-([^}]*)\}/g, "$1");

  test("builds the image of this repository", () => {
    const build = flagkeep.build as { context: string; dockerfile: string; args: Record<string, string> };
    const context = join(examples, "compose", build.context);
    expect(readFileSync(join(context, build.dockerfile), "utf8")).toBe(dockerfile);
    for (const name of Object.keys(build.args)) expect(dockerfile).toContain(`ARG ${name}=`);
  });

  test("sets all settings to valid values", () => {
    const environment = Object.entries(flagkeep.environment as Record<string, unknown>).map(
      ([name, value]) => [name, substituted(value)] as const,
    );
    const names = (Object.keys(settings) as SettingName[]).map(environmentName);
    for (const [name] of environment) expect(names).toContain(name);
    for (const [, name] of text.matchAll(/# (FLAGKEEP_\w+):/g)) expect(names).toContain(name!);
    const config = readConfig({}, Object.fromEntries(environment));
    expect(config["public-url"]).toBe("https://flags.example.com");
    const { front } = networks;
    expect(config["trusted-proxies"]).toEqual(front!.ipam.config.map(({ subnet }) => subnet));
    const grace = Number(/^(\d+)s$/.exec(String(flagkeep.stop_grace_period))![1]);
    expect(grace * 1_000).toBeGreaterThan(config["shutdown-timeout"] + 10_000);
  });

  test("keeps the data where the image has them, and names what it uses", () => {
    expect(flagkeep.volumes).toContain(`data:${/^VOLUME (\S+)$/m.exec(dockerfile)![1]}`);
    for (const service of Object.values(services)) {
      for (const volume of service.volumes as string[]) expect(volumes).toHaveProperty(volume.split(":")[0]!);
      for (const network of service.networks as string[]) expect(networks).toHaveProperty(network);
    }
    const port = /^EXPOSE (\d+)$/m.exec(dockerfile)![1];
    expect(substituted(services.proxy!.command)).toContain(`--to flagkeep:${port}`);
    // The proxy waits for a check that the image has.
    expect(services.proxy!.depends_on).toEqual({ flagkeep: { condition: "service_healthy" } });
    expect(dockerfile).toContain("HEALTHCHECK");
  });
});
