/** Prints how long lists of 10,000 flags take: `bun test/bench/flag-list.bench.ts`. */

import { availableParallelism } from "node:os";
import { flagsPath, TestServer } from "../support/management-server.ts";

const count = 10_000;
const rounds = 50;

using server = new TestServer();
const started = performance.now();
for (let n = 0; n < count; n++) {
  const filters = {
    groups: [{ properties: [{ key: "email", type: "person", operator: "icontains", value: `@${n}.com` }] }],
  };
  const body = { key: `flag-${n}`, name: `Flag ${n}`, filters, tags: [`t${n % 50}`] };
  const answer = await server.ask("POST", flagsPath, { body });
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
}
const perCreate = (performance.now() - started) / count;
console.log(`${availableParallelism()} cores, ${count} flags, one created in ${perCreate.toFixed(2)} ms`);

const key = server.first.personal_api_key;
for (const query of [
  "",
  "limit=100&offset=9000",
  "search=flag-77",
  "active=STALE",
  'tags=["t7"]',
  "order=-key",
]) {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const at = performance.now();
    const request = new Request(`http://localhost${flagsPath}?${query}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    await (await server.app.handle(request)).text();
    times.push(performance.now() - at);
  }
  times.sort((a, b) => a - b);
  const median = times[rounds / 2]!;
  const worst = times.at(-1)!;
  console.log(
    `${(query || "first page").padEnd(24)} median ${median.toFixed(1)} ms, worst ${worst.toFixed(1)} ms`,
  );
}
for (const path of ["local_evaluation", "local_evaluation?send_cohorts"]) {
  const at = performance.now();
  const request = () =>
    server.app.handle(
      new Request(`http://localhost${flagsPath}${path}`, { headers: { authorization: `Bearer ${key}` } }),
    );
  await (await request()).text();
  const first = performance.now() - at;
  const again = performance.now();
  await (await request()).text();
  console.log(
    `${path.padEnd(30)} built in ${first.toFixed(0)} ms, again ${(performance.now() - again).toFixed(1)} ms`,
  );
}
