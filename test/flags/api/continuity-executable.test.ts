/** Experience continuity over a real socket, in the order in which browsers send: `/flags` first, `$identify` later. */

import { expect, test } from "bun:test";
import { rolloutPosition } from "../../../src/flags/evaluate/bucketing.ts";
import { ServerProcess, until } from "../../support/server.ts";

/** An id for which `half` is on, or off. */
function idThatIs(isOn: boolean, name: string): string {
  for (let i = 0; ; i++) if (rolloutPosition("half", `${name}-${i}`) <= 0.5 === isOn) return `${name}-${i}`;
}

async function half(server: ServerProcess, body: object): Promise<boolean> {
  const answer = await server.post("/flags/?v=2", { api_key: server.token, ...body });
  const { flags, errorsWhileComputingFlags } = (await answer.json()) as {
    flags: Record<string, { enabled: boolean }>;
    errorsWhileComputingFlags: boolean;
  };
  expect(errorsWhileComputingFlags).toBe(false);
  return flags.half!.enabled;
}

async function identify(server: ServerProcess, user: string, anon: string): Promise<void> {
  await server.capture({ event: "$identify", distinct_id: user, properties: { $anon_distinct_id: anon } });
  await until(async () => {
    const found = await server.api(`/api/projects/1/persons/?distinct_id=${anon}`);
    return ((await found.json()) as { results: unknown[] }).results.length === 1;
  }, `${user} is a person`);
}

const flag = {
  key: "half",
  filters: { groups: [{ properties: [], rollout_percentage: 50 }] },
  ensure_experience_continuity: true,
};

test("a request before the person exists is honored immediately and after a stop and a kill", async () => {
  await using first = await ServerProcess.start();
  expect((await first.api("/api/projects/1/feature_flags/", { method: "POST", body: flag })).status).toBe(
    201,
  );
  const pairs = [1, 2, 3].map((n) => [idThatIs(false, `user${n}`), idThatIs(true, `anon${n}`)] as const);
  const [[user1, anon1], [user2, anon2], [user3, anon3]] = pairs as [
    readonly [string, string],
    readonly [string, string],
    readonly [string, string],
  ];
  for (const [user, anon] of pairs) {
    expect(await half(first, { distinct_id: anon })).toBe(true);
    expect(await half(first, { distinct_id: user })).toBe(false);
  }
  // Visitors without a person: `$identify` makes it.
  expect(await half(first, { distinct_id: user1, $anon_distinct_id: anon1 })).toBe(true);
  expect(await half(first, { distinct_id: user1 })).toBe(true);
  await identify(first, user1, anon1);
  expect(await half(first, { distinct_id: user1 })).toBe(true);
  // The server stops right after the answer.
  expect(await half(first, { distinct_id: user2, $anon_distinct_id: anon2 })).toBe(true);
  expect(await first.stop()).toBe(0);
  await using second = await ServerProcess.start({ directory: first.directory });
  expect(await half(second, { distinct_id: user2 })).toBe(true);
  await identify(second, user2, anon2);
  expect(await half(second, { distinct_id: user2 })).toBe(true);
  // The process is killed before the event is applied.
  expect(await half(second, { distinct_id: user3, $anon_distinct_id: anon3 })).toBe(true);
  await second.capture({ event: "$identify", distinct_id: user3, properties: { $anon_distinct_id: anon3 } });
  await second.kill();
  await using third = await ServerProcess.start({ directory: first.directory });
  await identify(third, user3, anon3);
  for (const [user] of pairs) expect(await half(third, { distinct_id: user })).toBe(true);
}, 120_000);
