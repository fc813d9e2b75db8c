/**
 * The snippets of `docs/sdks.md`, word for word, against the compiled executable.
 *
 * Those that need a compiler for a minute, and packages of other registries, run with `make test-sdk`.
 */

import { beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { chromiumPath, startBrowser } from "../support/browser.ts";
import { temporaryFolder, until } from "../support/server.ts";
import { installedProgram, testWhen } from "../support/skipped.ts";
import { goProgram, preparedFolder, pythonPackage } from "../support/toolchains.ts";
import { server, useServer } from "../support/use-server.ts";

const page = await Bun.file(join(import.meta.dir, "../../docs/sdks.md")).text();
const isLong = process.env.FLAGKEEP_TEST_SDKS === "1";
const notNow = "`make test-sdk`, which takes minutes";

useServer();
beforeAll(async () => {
  const filters = { groups: [{ properties: [], rollout_percentage: 100 }] };
  const body = { key: "new-checkout", filters };
  const created = await server.api("/api/projects/1/feature_flags/", { method: "POST", body });
  if (created.status !== 201) throw new Error(await created.text());
});

/** The code below a line of the page, for one person, with the address and key of the test's server. */
function snippet(before: string, person: string): string {
  const from = page.indexOf(before);
  const code = /```\w+\n(.*?)```/s.exec(page.slice(from))?.[1];
  if (from < 0 || code === undefined) throw new Error(`The page has no snippet after ${before}.`);
  return code
    .replaceAll("phc_...", server.token)
    .replaceAll("http://127.0.0.1:8000", server.url)
    .replaceAll("user-1", person);
}

/** Runs a program to its end; what it printed. */
async function output(command: string[], options: { cwd?: string; env?: Record<string, string> } = {}) {
  const child = Bun.spawn(command, {
    ...options,
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, ...options.env },
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${stderr}`);
  return stdout;
}

/** The snippet said that the flag is on, and its event is stored. */
async function expectWorked(printed: string, person: string): Promise<void> {
  expect(printed.toLowerCase()).toContain("true");
  const [event] = await server.eventsWhenStored(1, `event=signed+up&distinct_id=${person}`);
  expect(event!.properties).toMatchObject({ plan: "free" });
}

function written(name: string, text: string): { folder: string; file: string } {
  const folder = temporaryFolder();
  const file = join(folder, name);
  writeFileSync(file, text);
  return { folder, file };
}

const python = pythonPackage("posthog", "7.91.1");
const openfeature = pythonPackage("openfeature-provider-ofrep", "0.3.0");
const go = installedProgram("go");
/** Its folder has the modules at hand. */
const goModule = go && goProgram(join(import.meta.dir, "go"), "flagkeep-test-posthog-go-1.23.0");
const ruby =
  isLong && installedProgram("gem") && installedProgram("ruby")
    ? preparedFolder("flagkeep-test-posthog-ruby", ["gem", "install", "--install-dir", ".", "posthog-ruby"])
    : undefined;
const php =
  isLong && installedProgram("composer") && installedProgram("php")
    ? preparedFolder("flagkeep-test-posthog-php", ["composer", "require", "-n", "posthog/posthog-php"])
    : undefined;

describe("snippets of docs/sdks.md", () => {
  testWhen(chromiumPath !== undefined, "the snippet for browsers", "no Chromium here")(
    "browser",
    async () => {
      const { file } = written("page.js", snippet("Browser, `npm", "in-browser"));
      const built = await Bun.build({
        entrypoints: [file],
        target: "browser",
        plugins: [
          {
            name: "the installed posthog-js",
            setup(build) {
              const path = Bun.resolveSync("posthog-js/dist/module.js", resolve(import.meta.dir, "../.."));
              build.onResolve({ filter: /^posthog-js$/ }, () => ({ path }));
            },
          },
        ],
      });
      const script = await built.outputs[0]!.text();
      const site = Bun.serve({
        hostname: "localhost",
        port: 0,
        fetch: ({ url }) =>
          url.endsWith(".js")
            ? new Response(script, { headers: { "Content-Type": "text/javascript" } })
            : new Response(
                '<!doctype html><title>Shop</title><script type="module" src="/page.js"></script>',
                {
                  headers: { "Content-Type": "text/html" },
                },
              ),
      });
      const browser = await startBrowser();
      try {
        const page = await browser.newPage({ userAgent: "Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0" });
        // The library sends nothing for browsers that are remote controlled.
        await page.addInitScript("Object.defineProperty(navigator, 'webdriver', { get: () => false });");
        const lines: string[] = [];
        page.on("console", (line) => lines.push(line.text()));
        await page.goto(`http://localhost:${site.port}/`);
        await until(() => lines.some((line) => line === "true"), "the page says that the flag is on");
        await expectWorked(lines.join("\n"), "in-browser");
      } finally {
        await browser.close();
        await site.stop(true);
      }
    },
    60_000,
  );

  test("Node", async () => {
    const { folder, file } = written("snippet.mjs", snippet("Node, `npm", "in-node"));
    mkdirSync(join(folder, "node_modules"));
    for (const name of ["posthog-node", "@posthog"]) {
      const source = resolve(import.meta.dir, "../../node_modules", name);
      cpSync(source, join(folder, "node_modules", name), { recursive: true });
    }
    await expectWorked(await output(["node", file]), "in-node");
  });

  testWhen(
    python !== undefined,
    "the snippet for Python",
    "no Python with pip, or no network",
  )("Python", async () => {
    const { file } = written("snippet.py", snippet("Python, `pip", "in-python"));
    await expectWorked(await output(["python3", file], { env: { PYTHONPATH: python! } }), "in-python");
  });

  testWhen(
    openfeature !== undefined,
    "the snippet for OpenFeature",
    "no Python with pip, or no network",
  )("OpenFeature", async () => {
    const { file } = written("snippet.py", snippet("## OpenFeature", "in-openfeature"));
    expect(await output(["python3", file], { env: { PYTHONPATH: openfeature! } })).toBe("True\n");
  });

  testWhen(goModule !== undefined, "the snippet for Go", "no Go, or no network")(
    "Go",
    async () => {
      const { folder } = written("main.go", snippet("Go, `go get", "in-go"));
      for (const name of ["go.mod", "go.sum"]) cpSync(join(goModule!, "..", name), join(folder, name));
      await expectWorked(await output([go!, "run", "."], { cwd: folder }), "in-go");
    },
    120_000,
  );

  testWhen(ruby !== undefined, "the snippet for Ruby", isLong ? "no Ruby, or no network" : notNow)(
    "Ruby",
    async () => {
      const { file } = written("snippet.rb", snippet("Ruby, `gem", "in-ruby"));
      await expectWorked(await output(["ruby", file], { env: { GEM_PATH: ruby! } }), "in-ruby");
    },
    120_000,
  );

  testWhen(php !== undefined, "the snippet for PHP", isLong ? "no Composer, or no network" : notNow)(
    "PHP",
    async () => {
      const { folder, file } = written("snippet.php", snippet("PHP, `composer", "in-php"));
      cpSync(join(php!, "vendor"), join(folder, "vendor"), { recursive: true });
      await expectWorked(await output(["php", file], { cwd: folder }), "in-php");
    },
    120_000,
  );

  const maven = isLong && installedProgram("mvn") !== undefined && installedProgram("java") !== undefined;
  testWhen(maven, "the snippet for Java", isLong ? "no Maven" : notNow)(
    "Java",
    async () => {
      const { folder } = written("Snippet.java", snippet("Java, `com", "in-java"));
      writeFileSync(
        join(folder, "pom.xml"),
        `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>test</groupId><artifactId>test</artifactId><version>1</version><dependencies><dependency>
<groupId>com.posthog</groupId><artifactId>posthog-server</artifactId><version>2.3.3</version>
</dependency></dependencies></project>`,
      );
      await output(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"], {
        cwd: folder,
      });
      const printed = await output(["java", "-cp", "lib/*", "Snippet.java"], { cwd: folder });
      await expectWorked(printed, "in-java");
    },
    600_000,
  );

  const cargo = isLong && installedProgram("cargo") !== undefined;
  testWhen(cargo, "the snippet for Rust", isLong ? "no Cargo" : notNow)(
    "Rust",
    async () => {
      const { folder } = written(
        "Cargo.toml",
        `[package]\nname = "snippet"\nversion = "0.1.0"\nedition = "2021"\n
[dependencies]\nposthog-rs = "=0.30.0"\ntokio = { version = "1", features = ["full"] }\n`,
      );
      mkdirSync(join(folder, "src"));
      writeFileSync(join(folder, "src/main.rs"), snippet("Rust, `cargo", "in-rust"));
      await expectWorked(await output(["cargo", "run", "--quiet"], { cwd: folder }), "in-rust");
    },
    1_200_000,
  );

  testWhen(
    installedProgram("curl") !== undefined,
    "the snippet for curl",
    "no curl",
  )("curl", async () => {
    const lines = snippet("without any library", "in-curl");
    expect(await output(["sh", "-ec", lines])).toContain('"new-checkout"');
    await server.eventsWhenStored(1, "event=signed+up&distinct_id=in-curl");
  });
});
