/** Exposures of the real posthog-python count in the results of an experiment. */

import { describe, expect } from "bun:test";
import { join } from "node:path";
import type { ServerProcess } from "../support/server.ts";
import { testWhen } from "../support/skipped.ts";
import { pythonPackage } from "../support/toolchains.ts";
import { checkExposures, type Exposed, type Place, places } from "./server-exposures.ts";

const pythonPath = pythonPackage("posthog", "7.91.1");
const pythonTest = testWhen(
  pythonPath !== undefined,
  "posthog-python exposures",
  "no Python with pip, or no network",
);

async function exposeWithPython(server: ServerProcess, flag: string, place: Place): Promise<Exposed> {
  const script = join(import.meta.dir, "../sdk/python/expose_persons.py");
  const personalKey = place === "locally" ? server.initialized.personal_api_key : "";
  const child = Bun.spawn(["python3", script, server.url, server.token, personalKey, flag], {
    stdout: "pipe",
    stderr: "inherit",
    env: { ...process.env, PYTHONPATH: pythonPath },
  });
  const { changed, ...exposed } = JSON.parse(await new Response(child.stdout).text());
  expect(changed).toEqual([]);
  return exposed;
}

describe.each(places)("evaluating %s, each person is exposed once", (place) => {
  pythonTest("posthog-python", async () => await checkExposures(exposeWithPython, place));
});
