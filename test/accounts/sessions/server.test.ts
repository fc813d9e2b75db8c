/** Sessions of the started executable: the printed link, two servers on one machine, a flood of attempts. */

import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { flagkeep, initializedDirectory, ServerProcess, until } from "../../support/server.ts";
import { Browser } from "./browser.ts";

test("serve prints a link until the first owner has chosen a password; users link makes another", async () => {
  const directory = await initializedDirectory(["--email", "ann@example.com"]);
  const getLink = ({ logs }: ServerProcess) =>
    logs.map(({ console_url: url }) => url as string | undefined).find((url) => url !== undefined);
  {
    await using server = await ServerProcess.start({ directory });
    const printed = await until(() => getLink(server), "the link is printed");
    expect(printed).toStartWith(`${server.url}/console/setup#`);
    const browser = new Browser(server.url);
    // The link of `init` works as well as the one that was printed, and both die together.
    expect((await browser.setUp(directory.initialized.console_url)).status).toBe(201);
    expect((await new Browser(server.url).setUp(printed)).status).toBe(401);
    expect((await browser.ask("GET", "/api/users/@me/")).status).toBe(200);
    const { stdout } = await flagkeep([
      "users",
      "link",
      "bob@example.com",
      "--level",
      "admin",
      "--data-dir",
      directory.dataDir,
      "--json",
    ]);
    const created = JSON.parse(stdout);
    expect(created).toMatchObject({ email: "bob@example.com", is_new: true });
    expect(created.console_url).toStartWith(`${server.url}/console/setup#`);
    const bob = new Browser(server.url);
    expect((await bob.setUp(created.console_url)).status).toBe(201);
    await flagkeep(["users", "deactivate", "bob@example.com", "--data-dir", directory.dataDir]);
    expect((await bob.ask("GET", "/api/users/@me/")).status).toBe(401);
    await server.stop();
  }
  await using again = await ServerProcess.start({ directory });
  const browser = new Browser(again.url);
  expect((await browser.signIn("ann@example.com")).status).toBe(201);
  expect(getLink(again)).toBeUndefined();
  await again.stop();
  rmSync(directory.dataDir, { recursive: true });
});

test("users link prints the public address of the running server", async () => {
  const publicUrl = "https://flags.example.com/flags";
  await using server = await ServerProcess.start({ args: ["--public-url", publicUrl] });
  const call = ["users", "link", "new@example.com", "--data-dir", server.dataDir, "--json"];
  const { stdout } = await flagkeep(call);
  expect(JSON.parse(stdout).console_url).toStartWith(`${publicUrl}/console/setup#`);
});

test("two servers on one host keep their sessions apart", async () => {
  await using one = await ServerProcess.start();
  await using two = await ServerProcess.start();
  const jar = new Map<string, string>();
  const first = new Browser(one.url, jar);
  const second = new Browser(two.url, jar);
  expect((await first.setUp(one.initialized.console_url)).status).toBe(201);
  expect((await second.setUp(two.initialized.console_url)).status).toBe(201);
  expect(jar.size).toBe(2);
  for (const browser of [first, second, first]) {
    expect((await browser.ask("GET", "/api/users/@me/")).status).toBe(200);
  }
  const evil = await fetch(`${one.url}/api/users/@me/`, {
    headers: { ...first.headers(), Origin: two.url },
  });
  expect(evil.status).toBe(401);
  expect(evil.headers.get("access-control-allow-credentials")).toBeNull();
});

test("capture and flags never read the cookie", async () => {
  await using server = await ServerProcess.start();
  const browser = new Browser(server.url);
  await browser.setUp(server.initialized.console_url);
  for (const path of [
    "/capture/",
    "/batch/",
    "/flags/?v=2",
    "/decide/",
    "/api/feature_flag/local_evaluation/",
  ]) {
    const { status } = await browser.ask("POST", path, { distinct_id: "x", event: "e" });
    expect([path, status >= 400]).toEqual([path, true]);
  }
});

test("a flood of attempts does not stop captures", async () => {
  await using server = await ServerProcess.start();
  await new Browser(server.url).setUp(server.initialized.console_url);
  // Counted and not timed: other tests run beside this one, and would slow both down.
  let captured = 0;
  let capturedBeside = 0;
  const statuses = new Map<number, number>();
  let isOver = false;
  const capturing = (async () => {
    for (; !isOver; captured++) {
      const { status } = await server.capture({ event: "e", distinct_id: `d${captured}` });
      expect(status).toBe(200);
    }
  })();
  await until(() => captured >= 50, "captures are answered");
  const started = captured;
  await Promise.all(
    Array.from({ length: 50 }, async (_, worker) => {
      const browser = new Browser(server.url);
      const { status } = await browser.signIn(`${worker}@example.com`, "wrong password here");
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      // The passwords that are looked at are what takes long.
      if (status === 401) capturedBeside = captured - started;
    }),
  );
  isOver = true;
  await capturing;
  console.log(`${capturedBeside} captures beside ${statuses.get(401)} attempts`);
  // Twenty of one address are looked at, the others sent away.
  expect([...statuses].sort()).toEqual([
    [401, 20],
    [429, 30],
  ]);
  // A password that is looked at on the server's own thread would let one capture through, at most.
  expect(capturedBeside).toBeGreaterThan(3 * 20);
});
