/** Corruption or loss of `people.sqlite`: readiness and `status` report it, and no request gets a 500 for it. */

import { expect, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TestAppliance, until } from "../support/appliance.ts";

interface Readiness {
  roles: { role: string; ready: boolean; reason: string | null }[];
}

async function flagsRole(appliance: TestAppliance): Promise<Readiness["roles"][number]> {
  const body = (await (await fetch(`${appliance.url}/_readiness`)).json()) as Readiness;
  return body.roles.find(({ role }) => role === "flags")!;
}

async function filled(): Promise<Pick<TestAppliance, "directory" | "dataDir">> {
  const appliance = await TestAppliance.start({});
  await appliance.batch(
    Array.from({ length: 300 }, (_, n) => ({
      event: "$identify",
      distinct_id: `u${n}`,
      properties: { $set: { plan: "pro", pad: "x".repeat(500) } },
    })),
  );
  await appliance.eventsWhenStored(300);
  const { directory, dataDir } = appliance;
  await appliance.stop();
  return { directory, dataDir };
}

test("garbage behind the first page: flags are not ready after the first failed read, and no 500", async () => {
  const { directory, dataDir } = await filled();
  const path = join(dataDir, "people.sqlite");
  const bytes = readFileSync(path);
  // The schema's pages stay, so that the file opens.
  for (let at = 60 * 4096; at < bytes.length; at++) bytes[at] = (at * 31) % 251;
  writeFileSync(path, bytes);
  await using appliance = await TestAppliance.start({ directory });
  const get = (of: string) =>
    fetch(`${appliance.url}/api/projects/1/${of}`, {
      headers: { Authorization: `Bearer ${appliance.made.personal_api_key}` },
    });
  const role = await until(async () => {
    for (let n = 0; n < 300; n += 30) {
      const { status } = await get(`persons/?distinct_id=u${n}`);
      expect([200, 503]).toContain(status);
    }
    const found = await flagsRole(appliance);
    return !found.ready && found;
  }, "flags are not ready");
  expect(role.reason).toContain("corrupt");
  const answer = await appliance.post("/flags/?v=2", { api_key: appliance.token, distinct_id: "u1" });
  expect(answer.status).toBe(200);
}, 60_000);

test("a missing file is reported, not replaced silently", async () => {
  const { directory, dataDir } = await filled();
  for (const end of ["", "-wal", "-shm"]) rmSync(join(dataDir, `people.sqlite${end}`), { force: true });
  await using appliance = await TestAppliance.start({ directory });
  expect(await flagsRole(appliance)).toMatchObject({ ready: false });
  expect((await flagsRole(appliance)).reason).toContain("people.sqlite was missing");
}, 60_000);
