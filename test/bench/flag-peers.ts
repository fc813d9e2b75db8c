/**
 * `make bench-flag-peers`: OFREP answers of Flagkeep beside those of GO Feature Flag's relay proxy, with the same client, the
 * same bodies and the same hundred flags. Takes what is installed, and says what is not.
 */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../support/ports.ts";
import { ServerProcess, until } from "../support/server.ts";
import { startClient } from "./client.ts";

const rounds = Number(process.env.ROUNDS ?? 3);
const seconds = Number(process.env.SECONDS ?? 5);
const flagCount = 100;
/** Who ask, again and again. */
const people = 20_000;
const plans = ["pro", "enterprise"];
const key = "secret-of-the-bench";

interface FlagServer extends AsyncDisposable {
  url: string;
  token: string;
}

interface Peer {
  name: string;
  /** Has to be in the path. */
  program: string;
  start(program: string): Promise<FlagServer>;
}

/** Half of all people, and those with certain plans. */
async function flagkeep(): Promise<FlagServer> {
  const server = await ServerProcess.start();
  const property = { type: "person", key: "plan", operator: "exact", value: plans };
  const groups = [{ properties: [property] }, { properties: [], rollout_percentage: 50 }];
  for (let number = 0; number < flagCount; number++) {
    const body = { key: `flag-${number}`, active: true, filters: { groups } };
    const { status } = await server.api("/api/projects/1/feature_flags/", { method: "POST", body });
    if (status !== 201) throw new Error(`A flag was not made: ${status}.`);
  }
  return {
    url: server.url,
    token: server.token,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

const peers: Peer[] = [
  {
    name: "GO Feature Flag",
    program: "relayproxy",
    async start(program) {
      const folder = mkdtempSync(join(tmpdir(), "flagkeep-peer-"));
      const port = freePort();
      const query = `plan in [${plans.map((plan) => JSON.stringify(plan)).join(", ")}]`;
      const flag = {
        variations: { on: true, off: false },
        targeting: [{ query, variation: "on" }],
        defaultRule: { percentage: { on: 50, off: 50 } },
      };
      const flags = Array.from({ length: flagCount }, (_, number) => [`flag-${number}`, flag]);
      // JSON is YAML.
      writeFileSync(join(folder, "flags.yaml"), JSON.stringify(Object.fromEntries(flags)));
      const settings = {
        server: { mode: "http", host: "127.0.0.1", port },
        retriever: { kind: "file", path: join(folder, "flags.yaml") },
        pollingInterval: 60_000,
        loglevel: "error",
        authorizedKeys: { evaluation: [key] },
      };
      writeFileSync(join(folder, "settings.yaml"), JSON.stringify(settings));
      const server = Bun.spawn([program, "--config", join(folder, "settings.yaml")], {
        stdin: "ignore",
        stdout: "ignore",
        stderr: "ignore",
      });
      const url = `http://127.0.0.1:${port}`;
      const isThere = () =>
        fetch(`${url}/health`).then(
          ({ ok }) => ok,
          () => false,
        );
      await until(isThere, "it answers");
      return {
        url,
        token: key,
        async [Symbol.asyncDispose]() {
          server.kill();
          await server.exited;
          rmSync(folder, { recursive: true, force: true });
        },
      };
    },
  },
];

async function measure({ url, token }: FlagServer) {
  const perSecond = async (path: string, requests: number) => {
    const headers = { Authorization: `Bearer ${token}` };
    const plan = { kind: "ofrep", size: people, connections: 32, seconds, seed: 1 } as const;
    const client = await startClient({
      ...plan,
      url,
      token,
      path,
      headers,
      requests: requests * (seconds + 1),
    });
    const { requests: sent, failures, seconds: durationMs } = await client.run();
    if (failures > 0) throw new Error(`${failures} of ${sent} requests failed.`);
    return sent / durationMs;
  };
  return {
    one: await perSecond("/ofrep/v1/evaluate/flags/flag-7", 40_000),
    all: await perSecond("/ofrep/v1/evaluate/flags", 12_000),
  };
}

type Figures = Awaited<ReturnType<typeof measure>>;

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
const installed = peers.flatMap((peer) => {
  const program = Bun.which(peer.program);
  if (program === null) console.log(`MISSING ${peer.name}: ${peer.program} is not installed.`);
  return program === null ? [] : [{ peer, program }];
});
const measured = new Map<string, Figures[]>();
for (let round = 0; round < rounds; round++) {
  console.log(`round ${round + 1} of ${rounds}`);
  const servers: [name: string, start: () => Promise<FlagServer>][] = [
    ["Flagkeep", flagkeep],
    ...installed.map(({ peer, program }): [string, () => Promise<FlagServer>] => [
      peer.name,
      () => peer.start(program),
    ]),
  ];
  for (const [name, start] of servers) {
    await using server = await start();
    measured.set(name, [...(measured.get(name) ?? []), await measure(server)]);
  }
}
const own = measured.get("Flagkeep")!;
console.table(
  [...measured].map(([name, figures]) => {
    const getMedian = (what: keyof Figures) => median(figures.map((round) => round[what]));
    const ratio = (what: keyof Figures) =>
      median(figures.map((round, index) => own[index]![what] / round[what])).toFixed(2);
    return {
      name,
      "one flag/s": Math.round(getMedian("one")),
      "all flags/s": Math.round(getMedian("all")),
      "Flagkeep ÷, one": ratio("one"),
      "Flagkeep ÷, all": ratio("all"),
    };
  }),
);
