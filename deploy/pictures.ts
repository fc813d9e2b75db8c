/**
 * Updates the README's pictures of the console: starts the executable with generated data and photographs two
 * screens. `make pictures`; needs Chromium.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, chromium } from "playwright-core";
import { checkout, shopEvents, shopFlags, shopVisits } from "../test/support/shop.ts";

const root = join(import.meta.dir, "..");
const executable = join(root, "dist/flagkeep");
const target = join(root, "docs/pictures");
const chromiumPath = process.env.FLAGKEEP_TEST_CHROMIUM ?? "/usr/bin/chromium";
const folder = mkdtempSync(join(tmpdir(), "flagkeep-pictures-"));
const dataDir = join(folder, "data");
const created = JSON.parse(
  Bun.spawnSync([executable, "init", "--data-dir", dataDir, "--project", "Shop", "--json"]).stdout.toString(),
) as { project: { id: number; api_key: string }; personal_api_key: string; console_url: string };
const server = Bun.spawn(
  [executable, "serve", "--data-dir", dataDir, "--port", "0", "--log-format", "json"],
  { stdout: "pipe", stderr: "inherit" },
);

try {
  const url = await getAddress(server.stdout);
  await fill(url);
  await photograph(url);
} finally {
  server.kill();
  await server.exited;
  rmSync(folder, { recursive: true, force: true });
}

async function getAddress(stdout: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of stdout) {
    text += new TextDecoder().decode(chunk);
    for (const line of text.split("\n")) {
      const found = /"url":"(http[^"]+)"/.exec(line);
      if (line.includes('"listening"') && found) return found[1]!;
    }
  }
  throw new Error("The server did not start.");
}

async function send(url: string, path: string, body: unknown): Promise<void> {
  const answer = await fetch(`${url}${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${created.personal_api_key}` },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
}

/** Flags, people, and thirty days of events; before them fewer visits, for the comparison. */
async function fill(url: string): Promise<void> {
  for (const flag of shopFlags) await send(url, `/api/projects/${created.project.id}/feature_flags/`, flag);
  const now = Date.now();
  const before = shopVisits(now - 33 * 86_400_000).slice(1);
  for (const batch of [...shopEvents(now), ...shopVisits(now), ...before])
    await send(url, "/batch/", { api_key: created.project.api_key, batch });
}

async function photograph(url: string): Promise<void> {
  const browser: Browser = await chromium.launch({
    executablePath: chromiumPath,
    headless: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-sync",
    ],
  });
  try {
    const context = await browser.newContext({
      baseURL: url,
      viewport: { width: 1280, height: 800 },
      colorScheme: "light",
      reducedMotion: "reduce",
    });
    const page = await context.newPage();
    await page.goto(`/console/setup#${created.console_url.split("#")[1]}`);
    await page.getByLabel("Name").fill("Ann Bell");
    await page.getByLabel("Password").fill("a picture says enough");
    await page.keyboard.press("Enter");
    await page.getByRole("navigation", { name: "Menu" }).waitFor();

    const take = async (name: string) => {
      await page.mouse.move(0, 0);
      await page.waitForLoadState("networkidle");
      await page.screenshot({ path: join(target, `${name}.png`) });
      console.log(`docs/pictures/${name}.png`);
    };
    await page.goto("/console/overview");
    await page.locator(".overview-course .plot").waitFor();
    await page.getByText("Chrome").first().waitFor();
    await take("overview");
    await page.goto("/console/flags");
    await page.locator(".sparkline").first().waitFor();
    await page.getByRole("link", { name: checkout.key }).click();
    await page.getByRole("row", { name: /^Get the flag/ }).waitFor();
    await take("flag");
  } finally {
    await browser.close();
  }
}
