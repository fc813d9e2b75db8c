/** Commands of operations: arguments and options from their input, `--json` from their output. */

import { type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { Command, Option } from "commander";
import { InvalidFieldError, NotFoundError } from "../../src/lib/errors.ts";
import {
  type Caller,
  type CommandArgument,
  type CommandForm,
  type CommandOption,
  type Members,
  type Operation,
  otherMembers,
  pathMembers,
} from "../../src/operations/operation.ts";
import { organizationOption, projectOption } from "../options.ts";
import {
  collect,
  fileName,
  positiveInteger,
  print,
  printJson,
  printTable,
  run,
  wholeNumber,
  withJson,
} from "../output.ts";
import { withSettings } from "../settings.ts";
import { creatorHelp } from "../stores.ts";
import type { OpenStores } from "./local-stores.ts";
import { type CallOptions, getServer, withServer } from "./server.ts";

/** A group with a command for each of these operations that has one. @param open stores other than the default ones */
export function operationGroup(
  name: string,
  description: string,
  examples: readonly string[],
  operations: readonly Operation[],
  open?: OpenStores,
): Command {
  const group = new Command(name).description(description).addHelpText("after", examplesHelp(examples));
  return addOperations(group, operations, open);
}

/** Adds a command to a group for each of these operations that has one. */
export function addOperations(group: Command, operations: readonly Operation[], open?: OpenStores): Command {
  for (const operation of operations)
    if (operation.cli !== undefined) group.addCommand(operationCommand(operation, open));
  return group;
}

/** Help of the option that applies changes of protected flags. */
export const confirmHelp = "apply changes that need approval without a change request";
const actingUserHelp = "e-mail address of the acting user; optional if there is one";

/** The command of one operation. @param open opens the stores that it needs beyond the metadata */
export function operationCommand(operation: Operation, open?: OpenStores): Command {
  const form = getForm(operation);
  const name = form.name.split(" ").at(-1)!;
  const command = withJson(
    withSettings(new Command(name), ["data-dir", ...(form.settings ?? [])]),
    printedSchema(operation),
  );
  command.description(form.description ?? `${operation.summary}.`);
  for (const { name: argument, description, isNumber } of form.arguments ?? []) {
    const shown = form.hasFile ? `[${argument}]` : `<${argument}>`;
    if (isNumber) command.argument(shown, description, positiveInteger);
    else command.argument(shown, description);
  }
  for (const { option } of getOptions(operation)) command.addOption(option);
  let fromFile: Members = {};
  if (form.hasFile) {
    command.option("-f, --file <file>", "read the API's members from a YAML or JSON file", fileName);
    command.hook("preAction", async () => {
      const { file } = command.opts();
      if (file !== undefined) fromFile = (await import("./input-file.ts")).readInputFile(operation, file);
      assertComplete(operation, fromFile, command);
    });
  }
  if (operation.on === "organization") command.addOption(organizationOption);
  if (operation.on === "project") command.addOption(projectOption);
  if (form.hasCreator) command.option("--user <email>", creatorHelp);
  if (form.hasConfirm) command.option("--confirm", confirmHelp);
  if (form.hasActingUser) command.option("--user <email>", actingUserHelp);
  withServer(command);
  return command.addHelpText("after", examplesHelp(form.examples)).action(
    run(async (...args: unknown[]) => {
      const options = args.at(-2) as CallOptions & Members;
      const call = async (caller: Caller) => {
        const positional = args.slice(0, -2) as (string | undefined)[];
        const { input, found } = await readInput(operation, { positional, options, fromFile }, caller);
        await callAndPrint(operation, { input, found, isJson: options.json === true }, caller);
      };
      await withCaller(operation, options, call, open);
    }),
  );
}

const getForm = (operation: Operation): CommandForm => operation.cli! as CommandForm;

function examplesHelp(examples: readonly string[]): string {
  const lines = examples.map((example) => `  flagkeep ${example}`).join("\n");
  return `\nExample${examples.length === 1 ? "" : "s"}:\n${lines}`;
}

/** The schema of what `--json` prints. */
function printedSchema(operation: Operation): TSchema {
  const { result, formerJson } = getForm(operation);
  const whole = result?.schema ?? operation.output ?? Type.Object({});
  const item: TSchema = operation.isList ? whole.properties.results.items : whole;
  if (formerJson === undefined) return operation.isList ? Type.Array(item) : item;
  const printed = Type.Object({ ...(item.properties as TProperties), ...formerJson.properties });
  return operation.isList ? Type.Array(printed) : printed;
}

interface MemberOption {
  member: string;
  option: Option;
  parse: CommandOption["parse"];
}

/** An option for each member of the input that is no argument. */
function getOptions(operation: Operation): MemberOption[] {
  const { arguments: positional = [], options = {} } = getForm(operation);
  const imported = new Set(positional.map(({ member }) => member));
  const required = new Set<string>(operation.input.required ?? []);
  return otherMembers(operation)
    .filter(([member]) => !imported.has(member))
    .flatMap(([member, schema]) => {
      const form = (options as Record<string, CommandOption | undefined>)[member];
      const isRequired = form?.isRequired ?? required.has(member);
      return derivedOptions(member, schema, form).map((option) => ({
        member,
        option: option.makeOptionMandatory(isRequired && !getForm(operation).hasFile),
        parse: form?.parse,
      }));
    });
}

/** A description of the API in the style of option help: a phrase in lower case, without a period at its end. */
function toOptionHelp(description: string): string {
  const phrases = description.replace(/\.$/, "").split(/\. (?=[A-Z`])/);
  return phrases
    .map((phrase) => phrase.replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase()))
    .join("; ");
}

function derivedOptions(member: string, schema: TSchema, form: CommandOption | undefined): Option[] {
  const name = member.replaceAll("_", "-");
  const present = withoutNull(schema);
  const described = (schema.description ?? present.description) as string | undefined;
  const description =
    form?.description ?? (described === undefined ? name.replaceAll("-", " ") : toOptionHelp(described));
  if (form?.flags !== undefined) {
    const option = new Option(form.flags, description);
    return [form.choices === undefined ? option : option.choices(form.choices)];
  }
  if (present.type === "boolean")
    return [new Option(`--${name}`, description), new Option(`--no-${name}`, `opposite of --${name}`)];
  const option = new Option(`--${name} <${present.type === "integer" ? "number" : "value"}>`, description);
  if (Array.isArray(present.enum)) return [option.choices(present.enum.map(String))];
  if (present.type === "integer") return [option.argParser(wholeNumber)];
  if (present.type === "array") return [option.argParser(collect((value: string) => value))];
  return [option];
}

/** The schema of a nullable member's other value. */
const withoutNull = (schema: TSchema): TSchema =>
  (schema.anyOf as TSchema[] | undefined)?.find(({ type }) => type !== "null") ?? schema;

/** What a command was called with. */
interface Given {
  positional: readonly (string | undefined)[];
  options: Members;
  fromFile: Members;
}

async function readInput(
  operation: Operation,
  { positional: args, options, fromFile }: Given,
  caller: Caller,
): Promise<{ input: Members; found: Members }> {
  const found: Members = {};
  const input = { ...fromFile };
  const { arguments: positional = [], adds } = getForm(operation);
  const typed = getOptions(operation);
  for (const { member, option, parse } of typed) {
    const value = options[option.attributeName()];
    if (value !== undefined) input[member] = parse === undefined ? value : parse(value as string);
  }
  const inPath = pathMembers(operation);
  const hasChange =
    adds !== undefined ||
    Object.keys(input).length > 0 ||
    positional.some(({ member }) => !inPath.includes(member));
  if (operation.http.method === "PATCH" && !hasChange) throw nothingToChange(typed);
  for (const [index, argument] of positional.entries()) {
    const text = args[index];
    if (text === undefined) continue;
    input[argument.member] =
      argument.lookup === undefined ? text : await findByArgument(argument, text, found, caller);
  }
  return { input: { ...input, ...adds?.(found as never) }, found };
}

/** What commander itself checks for commands without `--file`. */
function assertComplete(operation: Operation, fromFile: Members, command: Command): void {
  const isRequired = (member: string) =>
    fromFile[member] === undefined && (operation.input.required ?? []).includes(member);
  for (const [index, { name, member }] of (getForm(operation).arguments ?? []).entries())
    if (command.args[index] === undefined && isRequired(member))
      command.error(`error: missing required argument '${name}'`);
  for (const { member, option } of getOptions(operation))
    if (command.opts()[option.attributeName()] === undefined && isRequired(member))
      command.error(`error: required option '${option.flags}' not specified`);
}

function nothingToChange(typed: readonly MemberOption[]): InvalidFieldError {
  const names = [...new Set(typed.map(({ option }) => option.long))].join(", ");
  return new InvalidFieldError(null, "invalid_input", `Nothing to change. Use at least one of ${names}.`);
}

/** The value of an argument with a lookup. @param found receives the record @throws {NotFoundError} */
export async function findByArgument(
  { name, lookup }: CommandArgument,
  text: string,
  found: Members,
  caller: Caller,
): Promise<unknown> {
  const { in: list, input, matches, value, missing } = lookup!;
  const records = await caller.list(list(), input?.(found, text));
  const record = records.find((record) => matches(record as never, text));
  if (record === undefined) {
    const problem = missing(text, found as never);
    throw typeof problem === "string" ? new NotFoundError(problem) : problem;
  }
  found[name] = record;
  return value(record as never);
}

/** The input of an operation that reads the body itself. */
function toRaw(operation: Operation, input: Members): Members {
  const inPath = pathMembers(operation);
  const entries = Object.entries(input);
  const others = entries.filter(([name]) => !inPath.includes(name));
  return {
    ...Object.fromEntries(entries.filter(([name]) => inPath.includes(name))),
    body: Object.fromEntries(others),
  };
}

async function callAndPrint(
  operation: Operation,
  { input, found, isJson }: { input: Members; found: Members; isJson: boolean },
  caller: Caller,
): Promise<void> {
  const { result, formerJson, done, table } = getForm(operation);
  const printed = (record: unknown) =>
    formerJson === undefined ? record : { ...(record as Members), ...formerJson.build(record as never) };
  if (operation.isList) {
    const records = await caller.list(operation, input);
    if (isJson) printJson(records.map(printed));
    else
      printTable(
        table!.headings,
        records.map((record) => table!.row(record as never)),
      );
    return;
  }
  const output = await caller.call(operation, operation.http.takesRawBody ? toRaw(operation, input) : input);
  const record =
    result === undefined
      ? output
      : await result.build({ output: output as never, found: found as never, input: input as never }, caller);
  if (isJson) printJson(printed(record));
  else print(done!(record as never));
}

/** @throws {InvalidSettingError} @throws {NotInitializedError} @throws {AmbiguousSelectorError} */
export async function withCaller(
  operation: Operation,
  options: CallOptions,
  work: (caller: Caller) => Promise<void>,
  open?: OpenStores,
): Promise<void> {
  const server = getServer(options);
  if (server !== undefined) {
    const { remoteCaller } = await import("./remote.ts");
    return await work(remoteCaller(server, options));
  }
  const { withLocalCaller } = await import("./local.ts");
  await withLocalCaller(operation, options, work, open);
}
