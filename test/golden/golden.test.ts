/**
 * The public surface as files: the OpenAPI document, the help of every command, the shapes of `--json`, the tools of MCP.
 *
 * A change of one of them shows in its diff. `FLAGKEEP_UPDATE_DOCS=1 bun test test/golden` writes them. Exit statuses of
 * right and wrong calls are in `test/cli/invocations.ts`.
 */

import { expect, test } from "bun:test";
import { join } from "node:path";
import type { Command } from "commander";
import { getJsonShape } from "../../cli/output.ts";
import type { OpenApiDocument, Operation } from "../../src/http/openapi.ts";
import { version } from "../../src/version.ts";
import { groups, leaves } from "../cli/tree.ts";
import { getType } from "../docs/json-types.ts";
import { server, useServer } from "../support/use-server.ts";

useServer({ args: ["--mcp", "on"] });

/** Compares a file, or writes it. */
async function expectGolden(name: string, content: string): Promise<void> {
  const path = join(import.meta.dir, name);
  if (process.env.FLAGKEEP_UPDATE_DOCS) await Bun.write(path, content);
  else expect(content, "FLAGKEEP_UPDATE_DOCS=1 writes the file").toBe(await Bun.file(path).text());
}

/** An operation, a line for each of its parts. */
function operationLines(name: string, operation: Operation): string {
  const { parameters, responses, ...rest } = operation;
  const parts = [
    ...Object.entries(rest),
    ...parameters.map((parameter) => [`parameter ${parameter.name}`, parameter] as const),
    ...Object.entries(responses).map(([status, response]) => [status, shortened(response)] as const),
  ];
  return [name, ...parts.map(([part, value]) => `  ${part} ${JSON.stringify(value)}`)].join("\n");
}

/** Errors have one schema; their examples would be most of the file. */
const shortened = (response: object) =>
  JSON.stringify(response).includes("schemas/ApiFailure") && "description" in response
    ? response.description
    : response;

const lines = (value: unknown) => `${JSON.stringify(value, null, 1)}\n`;

test("the OpenAPI document", async () => {
  const document = (await (await fetch(`${server.url}/api/schema/`)).json()) as OpenApiDocument;
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) =>
      operationLines(`${method.toUpperCase()} ${path}`, operation),
    ),
  );
  expect(operations.length).toBeGreaterThan(150);
  const schemas = Object.entries(document.components.schemas)
    .map(([name, schema]) => `schema ${name} ${JSON.stringify(schema)}`)
    .sort();
  await expectGolden("openapi.txt", `${[...operations.sort(), ...schemas].join("\n")}\n`);
});

test("the tools of MCP", async () => {
  const answer = await server.post(
    "/mcp",
    { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} },
    {
      Accept: "application/json, text/event-stream",
      Authorization: `Bearer ${server.initialized.personal_api_key}`,
    },
  );
  const { result } = (await answer.json()) as { result: { tools: object[] } };
  expect(result.tools.length).toBeGreaterThan(7);
  await expectGolden("mcp-tools.txt", lines(result.tools));
});

function getHelp(command: Command): string {
  let help = "";
  command.configureOutput({
    writeOut: (part) => {
      help += part;
    },
    getOutHelpWidth: () => 120,
  });
  command.outputHelp();
  return help.replaceAll(version, "VERSION");
}

test("the help of every command", async () => {
  const parts = [...groups(), ...leaves()].map(
    ([name, command]) => `$ flagkeep ${name} --help\n${getHelp(command)}`,
  );
  expect(parts.length).toBeGreaterThan(70);
  // The default of a setting depends on the machine.
  const cpus = /(FLAGKEEP_DUCKDB_THREADS; default )\d+/g;
  await expectGolden("help.txt", parts.join("\n").replace(cpus, "$1CPUS"));
});

test("what --json prints", async () => {
  const parts = [...leaves()].flatMap(([name, command]) => {
    const shape = getJsonShape(command);
    return shape === undefined ? [] : [`$ flagkeep ${name} --json\n${getType(shape)}\n`];
  });
  expect(parts.length).toBeGreaterThan(60);
  await expectGolden("json-shapes.txt", parts.join("\n"));
});
