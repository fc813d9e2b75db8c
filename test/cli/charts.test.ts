/** Numbers drawn as text, and the commands that do so. */

import { beforeAll, describe, expect, test } from "bun:test";
import { bars, chartLines, spark } from "../../cli/charts.ts";
import { executable, flagkeep } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

const getLength = (line: string) => [...line].filter((character) => character === "█").length;

describe("charts", () => {
  test("bars are proportional to their values, next to their labels", () => {
    const lines = bars(
      [
        { label: "signed up", value: 120 },
        { label: "paid", value: 60 },
        { label: "left", value: 0 },
      ],
      80,
    );
    expect(lines.map((line) => line.split(" ")[0])).toEqual(["signed", "paid", "left"]);
    expect(lines.map((line) => line.split(" ").at(-1))).toEqual(["120", "60", "0"]);
    const [first, second, third] = lines.map(getLength);
    expect(first).toBeGreaterThan(30);
    expect(Math.abs(second! - first! / 2)).toBeLessThanOrEqual(1);
    expect(third).toBeLessThanOrEqual(1);
    expect(lines.every((line) => Bun.stringWidth(line) <= 80)).toBe(true);
  });

  test("nothing but zeros, one value, and labels that would steer a terminal", () => {
    expect(bars([{ label: "a", value: 0 }])).toEqual([expect.stringMatching(/^a .*0$/)]);
    expect(getLength(bars([{ label: "a", value: 5 }])[0]!)).toBeGreaterThan(10);
    expect(bars([{ label: "\u001b[31m".repeat(20), value: 1 }])[0]).not.toContain("\u001b");
    expect([spark([]), spark([0, 0]), spark([0, 5, 10])]).toEqual(["", "▁▁", "▁▄█"]);
    expect(spark(Array.from({ length: 500 }, (_, i) => i)).length).toBe(60);
  });

  test("rows of moments are sparklines, one for each series; without numbers there is no chart", () => {
    const rows = ["2026-01-01", "2026-01-02", "2026-01-03"].flatMap((day, index) => [
      { day, event: "a", n: index },
      { day, event: "b", n: String(10 - index) },
    ]);
    expect(chartLines(["day", "event", "n"], rows)).toEqual([
      "a  ▁▄█  0 to 2, 2026-01-01 to 2026-01-03",
      "b  ██▇  8 to 10, 2026-01-01 to 2026-01-03",
    ]);
    expect(chartLines(["event"], [{ event: "a" }])).toBeUndefined();
  });
});

describe("on the command line", () => {
  useServer();
  beforeAll(async () => {
    await server.batch(["a", "a", "b"].map((event) => ({ event, distinct_id: "kim" })));
    await server.eventsWhenStored(3);
  });
  const run = (...args: string[]) => flagkeep([...args, "--data-dir", server.dataDir]);

  test("query --chart", async () => {
    const sql = "SELECT event, count(*) AS n FROM events GROUP BY ALL ORDER BY n DESC";
    const { stdout, stderr, code } = await run("query", "--chart", sql);
    expect([stderr, code]).toEqual(["", 0]);
    expect(stdout).toMatch(/^a {2}█+ 2\nb {2}█+ 1\n$/);
    expect((await run("query", "--chart", "--json", sql)).stderr).toContain("cannot be combined");
    expect((await run("query", "--chart", "--format", "csv", sql)).code).toBe(2);
    expect((await run("query", "--chart", "SELECT event FROM events")).stderr).toContain("a numeric column");
    expect((await run("query", "--chart", `${sql} LIMIT 0`)).stdout).toBe("No rows.\n");
  });

  test("top shows rates, lanes, engine, slow queries and last events", async () => {
    const { stdout, stderr, code } = await run("top", "--count", "1");
    expect([stderr, code]).toEqual(["", 0]);
    for (const part of [
      "Events ",
      "realtime: 3 accepted",
      "Engine   up",
      "Disk ",
      "Slowest queries",
      "kim",
    ]) {
      expect(stdout).toContain(part);
    }
    // Nothing that only a terminal understands.
    expect(stdout).not.toContain("\u001b");
    const frame = JSON.parse((await run("top", "--json")).stdout) as {
      slow_queries: { query: string; sql: string | null }[];
    };
    expect(frame.slow_queries.some(({ sql }) => sql?.includes("GROUP BY ALL"))).toBe(true);
  });

  test("top exits when its output is closed, and on q", async () => {
    const command = `'${executable}' top --interval 0.2 --data-dir '${server.dataDir}'`;
    const piped = Bun.spawn(["bash", "-c", `set -o pipefail; ${command} | head -3`], {
      stdout: "pipe",
      stderr: "pipe",
    });
    expect(await new Response(piped.stdout).text()).toContain("flagkeep");
    expect([await piped.exited, await new Response(piped.stderr).text()]).toEqual([0, ""]);
  });
});
