/** The executable by itself: in an empty folder, without the sources, its page is whole. */

import { expect, test } from "bun:test";
import { copyFileSync, mkdirSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { executable, temporaryFolder } from "../support/server.ts";

const repository = resolve(import.meta.dir, "../..");

test("copied into an empty folder it serves the page, and has nothing of the sources open", async () => {
  const folder = temporaryFolder();
  const alone = join(folder, "bin");
  mkdirSync(alone);
  copyFileSync(executable, join(alone, "flagkeep"));
  const server = Bun.spawn(
    [join(alone, "flagkeep"), "serve", "--data-dir", "data", "--port", "0", "--log-format", "json"],
    {
      cwd: alone,
      env: { HOME: alone, PATH: "" },
      stdout: "pipe",
      stderr: "inherit",
    },
  );
  try {
    const url = await getAddress(server.stdout);
    const html = await (await fetch(`${url}/console/`)).text();
    const files = [...html.matchAll(/(?:src|href)="(\/console\/a\/[^"]+)"/g)].map(([, path]) => path!);
    expect(files.length).toBeGreaterThan(3);
    for (const path of files) {
      const answer = await fetch(`${url}${path}`);
      expect([path, answer.status]).toEqual([path, 200]);
      // A bundler that runs late would name where its sources are.
      expect(await answer.text()).not.toContain(repository);
    }
    const opened = readdirSync(`/proc/${server.pid}/fd`).map((fd) => {
      try {
        return readlinkSync(`/proc/${server.pid}/fd/${fd}`);
      } catch {
        return "";
      }
    });
    const mapped = await Bun.file(`/proc/${server.pid}/maps`).text();
    expect(opened.filter((path) => path.startsWith(repository))).toEqual([]);
    expect(mapped).not.toContain(repository);
    expect(readdirSync(alone).sort()).toEqual(["data", "flagkeep"]);
  } finally {
    server.kill();
    await server.exited;
    rmSync(folder, { recursive: true, force: true });
  }
});

async function getAddress(stdout: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stdout) {
    text += decoder.decode(chunk, { stream: true });
    const found = /"url":"(http[^"]+)"/.exec(
      text.split("\n").find((line) => line.includes('"listening"')) ?? "",
    );
    if (found) return found[1]!;
  }
  throw new Error(`The server did not start: ${text}`);
}
