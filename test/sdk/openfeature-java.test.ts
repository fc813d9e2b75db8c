/**
 * The official OpenFeature provider of Java against the compiled executable; `java/UseOpenFeature.java` calls it.
 * Maven takes long, so `make test-sdk` runs it.
 */

import { beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { installedProgram, testWhen } from "../support/skipped.ts";
import { preparedFolder } from "../support/toolchains.ts";
import { server, useServer } from "../support/use-server.ts";
import { createOpenFeatureFlags } from "./project-flags.ts";

const isLong = process.env.FLAGKEEP_TEST_SDKS === "1";
const providerVersion = "0.0.2";
const sdkVersion = "1.20.1";

/** A folder `lib` with the provider and what it needs; undefined without Java, Maven or network. */
function mavenPackages(): string | undefined {
  if (!isLong || !installedProgram("java") || !installedProgram("mvn")) return undefined;
  const dependency = (group: string, artifact: string, version: string) =>
    `<dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version></dependency>`;
  const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>test</groupId><artifactId>test</artifactId><version>1</version><dependencies>
${dependency("dev.openfeature.contrib.providers", "ofrep", providerVersion)}
${dependency("dev.openfeature", "sdk", sdkVersion)}
</dependencies></project>`;
  const copy = "mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib";
  return preparedFolder(`flagkeep-test-ofrep-java-${providerVersion}-${sdkVersion}`, [
    "sh",
    "-ec",
    `printf '%s' "$0" > pom.xml && ${copy}`,
    pom,
  ]);
}

const packages = mavenPackages();
const missing = isLong ? "no Java, no Maven, or no network" : "make test-sdk runs it";
const javaTest = testWhen(packages !== undefined, "OpenFeature for Java", missing);

interface Details {
  value: unknown;
  variant: string | null;
  reason: string | null;
  error: string | null;
  payload: string | null;
}

let received: Record<string, Details>;
if (packages !== undefined) useServer();
beforeAll(async () => {
  if (packages === undefined) return;
  await createOpenFeatureFlags(server);
  const program = join(import.meta.dir, "java/UseOpenFeature.java");
  const child = Bun.spawn(["java", "-cp", `${packages}/lib/*`, program, server.url, server.token], {
    stdout: "pipe",
    stderr: "inherit",
  });
  received = JSON.parse(await new Response(child.stdout).text()) as typeof received;
}, 600_000);

describe("dev.openfeature.contrib.providers:ofrep", () => {
  javaTest("values, reasons and payloads", () => {
    expect(received.always).toEqual({
      value: true,
      variant: "true",
      reason: "STATIC",
      error: null,
      payload: '{"color":"red","sizes":[1,2]}',
    });
    expect(received.never).toMatchObject({ value: false, reason: "SPLIT", error: null });
    expect(received["switched-off"]).toMatchObject({ value: false, reason: "DISABLED", error: null });
    expect(received.pro).toMatchObject({ value: true, reason: "TARGETING_MATCH", error: null });
    expect(received.free).toMatchObject({ value: false, reason: "UNKNOWN", error: null });
  });

  javaTest("a provider on a server gets flags for servers", () => {
    expect(received["for-servers"]).toMatchObject({ value: true, reason: "STATIC", error: null });
    expect(received["for-browsers"]).toMatchObject({ value: true, error: "FLAG_NOT_FOUND" });
  });

  javaTest("variants agree with the posthog answer; off is the default", async () => {
    for (let i = 0; i < 20; i++) {
      const answer = await server.post("/flags/?v=2", { api_key: server.token, distinct_id: `u${i}` });
      const { flags } = (await answer.json()) as { flags: Record<string, { variant: string | null }> };
      expect(received[`variants u${i}`]!.value).toBe(flags.variants!.variant ?? "default");
    }
  });

  javaTest("errors have their codes", () => {
    expect(received.missing).toMatchObject({ value: true, error: "FLAG_NOT_FOUND" });
    expect(received["wrong type"]).toMatchObject({ value: "x", error: "TYPE_MISMATCH" });
  });
});
