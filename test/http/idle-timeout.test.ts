/** Which routes may take longer than the idle timeout of a connection. */

import { expect, test } from "bun:test";
import { routeHandler } from "../../src/http/route-handler.ts";

/** Calls a route, and tells whether the idle timeout was off meanwhile. */
async function runsWithoutTimeout(route: object): Promise<boolean> {
  let isOff = false;
  const exchange = {
    deps: {},
    request: new Request("http://127.0.0.1/"),
    admission: { parts: {}, hasFullAccess: true, isConfirmed: true },
    withoutIdleTimeout: (work: () => unknown) => {
      isOff = true;
      return work();
    },
  };
  const { handle } = routeHandler({ answers: {}, handle: () => "done", ...route } as never, () => undefined);
  expect(await handle({ exchange } as never)).toBe("done");
  return isOff;
}

test("the doctor and queries may take long; uploads must go on", async () => {
  expect(await runsWithoutTimeout({ method: "GET", isLongRunning: true })).toBe(true);
  expect(await runsWithoutTimeout({ method: "POST", answers: { 503: {} } })).toBe(true);
  expect(await runsWithoutTimeout({ method: "GET" })).toBe(false);
  expect(await runsWithoutTimeout({ method: "POST", isLongRunning: true })).toBe(false);
});
