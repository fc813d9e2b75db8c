/** The kill test itself: it keeps quiet about a server that keeps its promises, and notices each way of breaking them. */

import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryFolder } from "../support/server.ts";
import { isClean, judge, type Sent, type Stored } from "./checker.ts";

function run() {
  const log: Sent[] = [];
  for (let request = 0; request < 40; request++) {
    const sender = `sender-${request % 4}`;
    const number = Math.floor(request / 4) * 3;
    log.push({
      sender,
      historical: request % 4 === 0,
      outcome: request % 7 === 3 ? "unknown" : "acknowledged",
      events: [1, 2, 3].map((n) => ({
        id: `${request}-${n}`,
        number: number + n,
        digest: `d${request}${n}`,
      })),
    });
  }
  const stored = log
    .filter(({ outcome }, index) => outcome === "acknowledged" || index % 2 === 0)
    .flatMap(({ sender, events }) => events.map((event): Stored => ({ ...event, sender })));
  return { log, stored };
}

describe("the checker", () => {
  test("finds nothing where every promise was kept; what was not acknowledged may be there or not", () => {
    const { log, stored } = run();
    const report = judge(log, stored);
    expect(isClean(report)).toBe(true);
    expect([report.acknowledged, report.stored]).toEqual([102, stored.length]);
  });

  test("an event that was sent again counts as acknowledged when one of the requests was", () => {
    const events = [{ id: "a", number: 1, digest: "d" }];
    const request = { sender: "s", historical: false, events };
    const log: Sent[] = [
      { ...request, outcome: "acknowledged" },
      { ...request, outcome: "unknown" },
    ];
    expect(judge(log, []).lost).toEqual({ count: 1, ids: ["a"] });
  });

  const faults: [
    finding: "lost" | "doubled" | "invented" | "changed" | "disordered",
    fault: (stored: Stored[]) => Stored[],
  ][] = [
    ["lost", (stored) => stored.filter(({ id }) => id !== "5-2")],
    ["doubled", (stored) => [...stored, stored.find(({ id }) => id === "5-2")!]],
    ["invented", (stored) => [...stored, { id: "new", sender: "sender-1", number: 1, digest: "d" }]],
    [
      "changed",
      (stored) => stored.map((event) => (event.id === "5-2" ? { ...event, digest: "other" } : event)),
    ],
    ["changed", (stored) => stored.map((event) => (event.id === "5-2" ? { ...event, sender: "x" } : event))],
    [
      "disordered",
      (stored) => {
        const [one, other] = ["4-1", "4-2"].map((wanted) => stored.findIndex(({ id }) => id === wanted));
        return stored.with(one!, stored[other!]!).with(other!, stored[one!]!);
      },
    ],
  ];
  for (const [finding, fault] of faults) {
    test(`notices one that is ${finding}`, () => {
      const { log, stored } = run();
      const report = judge(log, fault(stored));
      expect(report[finding].count).toBe(1);
      expect(isClean(report)).toBe(false);
      for (const other of ["lost", "doubled", "invented", "changed", "disordered"] as const)
        if (other !== finding) expect([other, report[other].count]).toEqual([other, 0]);
    });
  }
});

async function killTest(adapter: string, rounds: number) {
  const child = Bun.spawn(
    [
      process.execPath,
      join(import.meta.dir, "run.ts"),
      "--adapter",
      adapter,
      "--rounds",
      String(rounds),
      "--out",
      temporaryFolder(),
    ],
    { stdout: "pipe", stderr: "inherit" },
  );
  return { output: await new Response(child.stdout).text(), code: await child.exited };
}

test("a server that answers before it writes is found out", async () => {
  const { output, code } = await killTest("careless", 3);
  expect([code, output]).toEqual([1, expect.stringMatching(/lost +[1-9]/)]);
}, 60_000);

test("Flagkeep loses nothing and doubles nothing", async () => {
  const { output, code } = await killTest("flagkeep", 3);
  expect([output, code]).toEqual([expect.stringMatching(/lost +0\ndoubled +0\n/), 0]);
}, 120_000);
