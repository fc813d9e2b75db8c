/** `flagkeep web`. */

import { expect, test } from "bun:test";
import { webEvents } from "../events/web/visits-fixture.ts";
import { flagkeep, ServerProcess } from "../support/server.ts";

test("web shows the figures, lists and goals of a range, with and without a server", async () => {
  await using server = await ServerProcess.start();
  await server.batch(
    webEvents.map(({ event, distinctId, time, properties }) => ({
      event,
      distinct_id: distinctId,
      properties,
      timestamp: new Date(time!).toISOString(),
    })),
  );
  await server.eventsWhenStored(webEvents.length);
  await server.api("/api/projects/1/", {
    method: "PATCH",
    body: { web_goals: [{ name: "Signup", event: "signup" }] },
  });
  const call = async (...args: string[]) => {
    const range = ["--range", "2026-10-18..2026-10-21"];
    const { stdout, stderr, code } = await flagkeep(["web", "--data-dir", server.dataDir, ...range, ...args]);
    expect([code, stderr]).toEqual([0, ""]);
    return stdout;
  };
  const report = JSON.parse(await call("--json"));
  const figure = (value: number) => ({ value, previous: null });
  expect(report).toMatchObject({ from: "2026-10-18 00:00:00", to: "2026-10-21 23:59:59", online: 0 });
  expect(report.figures).toEqual({
    visitors: figure(9),
    visits: figure(12),
    views: figure(17),
    views_per_visit: figure(17 / 12),
    bounce_rate: figure(((5 / 12) * 100) / 100),
    visit_duration: figure(88_972 / 12),
  });
  expect(Object.keys(report.lists)).toEqual(["channels", "referrers", "pages", "countries", "browsers"]);
  expect(report.lists.pages[0]).toEqual({
    value: "/",
    visitors: figure(6),
    views: figure(7),
    bounce_rate: figure(4 / 6),
  });
  expect(report.goals).toEqual([
    { name: "Signup", visitors: figure(1), conversions: figure(1), rate: figure(1 / 9) },
  ]);
  const text = await call();
  for (const line of ["2026-10-18 to 2026-10-21, 0 online", "bounce rate      42%", "visit duration   2h 3m"])
    expect(text).toContain(line);
  const compared = await call("--by", "screen-sizes", "--compare", "previous", "--limit", "1");
  expect(compared).toContain("1280×720");
  expect(compared).toContain("PREVIOUS");
  expect(compared).not.toContain("CHANNELS");
  server.process.kill();
  await server.process.exited;
  expect(JSON.parse(await call("--json"))).toEqual(report);
});
