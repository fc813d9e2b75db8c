/**
 * Translates the tree of a HogQL statement to DuckDB's SQL, in place: properties by name (`properties.plan`,
 * `person.properties.plan`) become strings, and HogQL's functions DuckDB's. What has no translation stays, and is
 * rejected by the check that follows.
 */

import { StatementRejectedError } from "../duckdb/statement-errors.ts";
import type { WeekStartDay } from "../sql-dialect.ts";
import { aggregate, applyLimitBy, comparingAggregates, renameWindow } from "./hogql-clauses.ts";
import { templates } from "./hogql-functions.ts";
import { instantSql, resultZone, timeForm } from "./hogql-times.ts";
import { coerceProperties, isText, tryCast } from "./hogql-types.ts";
import { copy, fold, getConstant, jsonString, type Node, tableNames, textConstant } from "./nodes.ts";
import { pointerTo } from "./property-names.ts";

export interface HogqlContext {
  weekStartDay: WeekStartDay;
  /** Sources of the outermost columns; they name columns without an alias. */
  columns: readonly string[];
  /** The type of a property by its values, where all have it. */
  propertyType(owner: "event" | "person", name: string): "DOUBLE" | "BOOLEAN" | undefined;
  /** Parses a SELECT to its tree. */
  parse(sql: string): Promise<unknown>;
}

/** Columns of `events` that only HogQL statements read; the view has them if a statement names one. */
export const personColumns = { properties: "person_properties", created_at: "person_created_at" } as const;

/** @param tree the parsed result of `json_serialize_sql` */
export async function translateHogql(tree: unknown, context: HogqlContext): Promise<void> {
  const [statement] = ((tree as Node).statements ?? []) as Node[];
  if (statement === undefined) return;
  nameColumns(statement.node as Node, context.columns);
  await new Translator(tableNames(statement.node), context).children(statement);
}

/** PostHog names a column by its source, a property by its last name. */
function nameColumns(node: Node, sources: readonly string[]): void {
  let select = node;
  while (select.left !== undefined && select.left !== null) select = select.left as Node;
  const columns = (select.select_list ?? []) as Node[];
  if (columns.length !== sources.length) return;
  columns.forEach((column, index) => {
    nameProperty(column);
    const isNamedElsewhere = column.class === "COLUMN_REF" || column.class === "STAR" || isJsonRead(column);
    if (column.alias === "" && !isNamedElsewhere) column.alias = sources[index]!;
  });
}

const isJsonRead = ({ class: kind, function_name: name }: Node): boolean =>
  kind === "FUNCTION" && ["->", "->>", "prop"].includes(fold(String(name)));

/** Columns of PostHog's events table that are properties here. */
const propertyColumns = /^\$(?:session_id|window_id|group_\d+)$/;
/** `a['b']` and `(a).b`. */
const steps: ReadonlySet<string> = new Set(["ARRAY_EXTRACT", "STRUCT_EXTRACT"]);
/** Trees of templates, by their SQL, which has no part of a statement. */
const parsed = new Map<string, Node>();

class Translator {
  /** Zones by the instants that `toTimeZone` gave them to, and results of these. */
  private readonly zones = new WeakMap<Node, Node>();
  /** Nodes of arguments that templates have copied. */
  private copied = 0;

  constructor(
    private readonly tables: ReadonlyMap<string, string>,
    private readonly context: HogqlContext,
  ) {}

  async children(part: object): Promise<void> {
    for (const [name, child] of Object.entries(part)) {
      const isOfConstant = name === "value" && (part as Node).class === "CONSTANT";
      if (typeof child !== "object" || child === null || name === "cast_type" || isOfConstant) continue;
      if (name === "select_list") for (const column of child as Node[]) nameProperty(column);
      await this.children(child);
      if (typeof child.class === "string") (part as Node)[name] = await this.expression(child as Node);
      if (name === "select_list" || name === "group_expressions") this.typeAll(child as Node[]);
      if (name === "orders") for (const order of child as Node[]) this.typeAll(order, "expression");
    }
    if ((part as Node).type === "SELECT_NODE")
      await applyLimitBy(part as Node, (template, args) => this.instantiate(template, args));
  }

  /** Gives properties that are shown, grouped, ordered or aggregated the type of their values. */
  private typeAll(parent: Node[] | Node, only?: string): void {
    for (const [name, child] of Object.entries(parent)) {
      if (only !== undefined && name !== only) continue;
      const type = this.propertyType(child as Node);
      if (type !== undefined) (parent as Node)[name] = tryCast(child as Node, type);
    }
  }

  private propertyType(node: Node): "DOUBLE" | "BOOLEAN" | undefined {
    const [column, pointer] = (isText(node) ? node.children : []) as Node[];
    const names = (column?.class === "COLUMN_REF" ? column.column_names : []) as string[];
    const name = /^\/([^/]*)$/.exec(String(getConstant(pointer) ?? ""))?.[1];
    if (name === undefined || names.length === 0) return undefined;
    const key = name.replaceAll("~1", "/").replaceAll("~0", "~");
    if (fold(names.at(-1)!) === personColumns.properties) return this.context.propertyType("person", key);
    const views = new Set(names.length > 1 ? [this.tables.get(fold(names[0]!))] : this.tables.values());
    if (views.size !== 1) return undefined;
    if (views.has("events")) return this.context.propertyType("event", key);
    return views.has("persons") ? this.context.propertyType("person", key) : undefined;
  }

  private async expression(node: Node): Promise<Node> {
    const { class: kind, alias } = node;
    let result = node;
    if (kind === "COLUMN_REF") result = this.column(node);
    else if (kind === "FUNCTION") result = await this.call(node);
    else if (kind === "WINDOW") renameWindow(node);
    else if (steps.has(String(node.type))) result = member(node);
    if (result !== node) result.alias = alias;
    if (kind === "COMPARISON") await this.readInZone(result, ["left", "right"]);
    if (kind === "BETWEEN") await this.readInZone(result, ["input", "lower", "upper"]);
    coerceProperties(result);
    return result;
  }

  /** A string that is compared with a time of another zone is a time of that zone. */
  private async readInZone(node: Node, sides: readonly string[]): Promise<void> {
    const zone = sides.map((side) => this.zones.get(node[side] as Node)).find((found) => found !== undefined);
    for (const side of zone === undefined ? [] : sides) {
      if (typeof getConstant(node[side] as Node) !== "string") continue;
      node[side] = await this.instantiate("timezone(_2, CAST(_1 AS TIMESTAMP))", [node[side] as Node, zone!]);
    }
  }

  private column(node: Node): Node {
    const names = (node.column_names as string[]).slice();
    const table = names.length > 1 && this.tables.has(fold(names[0]!)) ? names.splice(0, 1) : [];
    const first = fold(names[0]!);
    const column = (name: string): Node => ({ ...node, alias: "", column_names: [...table, name] });
    if (first === "properties" && names.length > 1) return property(column(names[0]!), names.slice(1));
    if (names.length === 1 && propertyColumns.test(names[0]!)) return property(column("properties"), names);
    if (names.length === 1 && first === "created_at" && this.isOfEvents(table[0]))
      return column("received_at");
    if (first !== "person" || names.length === 1 || this.tables.has("person")) return node;
    const [, second = "", ...rest] = names;
    if (fold(second) === "id" && rest.length === 0) return column("person_id");
    if (fold(second) === "created_at" && rest.length === 0) return column(personColumns.created_at);
    if (fold(second) !== "properties") return node;
    const properties = column(personColumns.properties);
    return rest.length === 0 ? properties : property(properties, rest);
  }

  /** Whether a column can only be of the view `events`. */
  private isOfEvents(table: string | undefined): boolean {
    const views = table === undefined ? [...this.tables.values()] : [this.tables.get(fold(table))];
    return views.every((view) => view === "events");
  }

  private async call(node: Node): Promise<Node> {
    const name = fold(String(node.function_name));
    const args = (node.children ?? []) as Node[];
    if (name.startsWith("group")) this.typeAll(args);
    const translated = await this.translated(name, args);
    if (translated !== undefined) return translated;
    if (name.startsWith("jsonextract") && args.length > 1) return await this.typedExtract(args);
    const result = aggregate(node, name, args);
    if (comparingAggregates.has(String(result.function_name))) this.typeAll(result.children as Node[]);
    return result;
  }

  /** A function that has a form in DuckDB's SQL. */
  private async translated(name: string, args: Node[]): Promise<Node | undefined> {
    const zone = args.map((each) => this.zones.get(each)).find((found) => found !== undefined);
    const { weekStartDay } = this.context;
    const special = this.special(name, args) ?? timeForm(name, args, { weekStartDay, zone });
    const forms = Object.hasOwn(templates, name) ? templates[name]! : [];
    const zoned = zone && getForm(forms, args.length + 1);
    const [form, values] = special
      ? [special.sql, special.args ?? args]
      : zoned?.includes("timezone(")
        ? [zoned, [...args, zone!]]
        : [getForm(forms, args.length), args];
    if (form === undefined) return undefined;
    const result = await this.instantiate(form, values);
    const found = resultZone(name, args, zone);
    if (found !== undefined) this.zones.set(result, found);
    return result;
  }

  /** Functions whose form depends on the arguments. */
  private special(name: string, args: readonly Node[]): { sql: string; args?: Node[] } | undefined {
    const placeholders = args.map((_, index) => `_${index + 1}`);
    const [, second] = args;
    switch (name) {
      case "and":
      case "or":
        return { sql: args.length < 2 ? "_1" : placeholders.join(` ${name.toUpperCase()} `) };
      case "in":
      case "notin": {
        const values = second?.function_name === "row" ? (second.children as Node[]) : [second!];
        const list = values.map((_, index) => `_${index + 2}`).join(", ");
        return { sql: `_1 ${name === "in" ? "IN" : "NOT IN"} (${list})`, args: [args[0]!, ...values] };
      }
      case "array":
        return { sql: `[${placeholders.join(", ")}]` };
      case "tuple":
        return { sql: `row(${placeholders.join(", ")})` };
      case "quantiles":
        return { sql: `quantile_cont(#1, [${placeholders.slice(1).join(", ")}])` };
      case "grouparray":
      case "groupuniqarray": {
        const distinct = name === "groupuniqarray" ? "DISTINCT " : "";
        if (args.length !== 2) return undefined;
        return { sql: `list_slice(list(${distinct}_1) FILTER (_1 IS NOT NULL), 1, _2)` };
      }
      case "multiif": {
        const pairs = Array.from({ length: (args.length - 1) / 2 }, (_, index) => index * 2 + 1);
        const cases = pairs.map((at) => `WHEN _${at} THEN _${at + 1}`).join(" ");
        return args.length % 2 === 0 || args.length < 3
          ? undefined
          : { sql: `CASE ${cases} ELSE _${args.length} END` };
      }
      case "extract": {
        const pattern = String(getConstant(second) ?? "");
        const hasGroup = /(?:^|[^\\])\((?!\?[^P])/.test(pattern);
        return { sql: `regexp_extract(_1, _2, ${hasGroup ? 1 : 0})` };
      }
      default:
        return undefined;
    }
  }

  /** `JSONExtract(json, 'a', 'Float')`: the last argument is a type. */
  private async typedExtract(args: readonly Node[]): Promise<Node> {
    const type = fold(String(getConstant(args.at(-1)) ?? "string")).replace(/^nullable\((.*)\)$/, "$1");
    const kind = /^(?:int|uint|float|bool)/.exec(type)?.[0] ?? "string";
    return await this.instantiate(templates[`jsonextract${kind}`]![0]!, args.slice(0, -1));
  }

  /** The tree of a template with its arguments. */
  private async instantiate(template: string, args: readonly Node[]): Promise<Node> {
    const sql = template
      .replaceAll(/@(\d+)/g, (_, at: string) => instantSql(`_${at}`, args[Number(at) - 1]))
      .replaceAll(/#(\d+)/g, (_, at: string) => `TRY_CAST(_${at} AS DOUBLE)`)
      .replaceAll(/\$1/g, () => "_999");
    let tree = parsed.get(sql);
    if (tree === undefined) {
      const { statements } = (await this.context.parse(`SELECT ${sql}`)) as { statements: [{ node: Node }] };
      tree = (statements[0].node.select_list as Node[])[0]!;
      if (parsed.size < templatesMax) parsed.set(sql, tree);
    }
    this.count(template, args);
    const pointer = template.includes("$1") ? await this.pointer(args.slice(1)) : undefined;
    return substitute(tree, [...args], pointer) as Node;
  }

  /** Counts the nodes that a template copies: nested calls of one that repeats its argument grow exponentially. */
  private count(template: string, args: readonly Node[]): void {
    for (const [, at] of template.matchAll(/[_@#](\d+)/g)) {
      const argument = args[Number(at) - 1];
      if (argument !== undefined) this.copied += countNodes(argument);
      if (this.copied > copiesMax)
        throw new StatementRejectedError("The statement nests too many functions.");
    }
  }

  /** A JSON pointer from the names in arguments; numbers count from 1. */
  private async pointer(keys: readonly Node[]): Promise<Node> {
    const values = keys.map(getConstant);
    if (keys.length > 0 && values.some((value) => typeof value !== "string" && typeof value !== "number")) {
      const sql = keys.map((_, index) => `'/' || CAST(_${index + 1} AS VARCHAR)`).join(" || ");
      return await this.instantiate(sql, keys);
    }
    const steps = values.map((value) => pointerTo(String(typeof value === "number" ? value - 1 : value)));
    return textConstant(steps.join(""));
  }
}

/** Nodes that templates may copy in one statement; common statements need some thousand. */
const copiesMax = 300_000;

function countNodes(part: unknown): number {
  if (typeof part !== "object" || part === null) return 0;
  let count = 1;
  for (const child of Object.values(part)) count += countNodes(child);
  return count;
}

/** Distinct templates that are remembered. */
const templatesMax = 1000;

/** The form with as many arguments; undefined if the function has none. */
function getForm(forms: readonly string[], count: number): string | undefined {
  const isOpen = (form: string) => form.includes("$1");
  const arity = (form: string) =>
    Math.max(0, ...[...form.matchAll(/[_@#](\d)/g)].map(([, at]) => Number(at)));
  return forms.find((form) => (isOpen(form) ? count >= 1 : arity(form) === count));
}

/** The alias of a property, or of a column with another name here, that is read without one. */
function nameProperty(column: Node): void {
  const names = column.class === "COLUMN_REF" ? (column.column_names as string[]) : [];
  const isRenamed =
    names.at(-1) === "created_at" ||
    names.slice(0, -1).some((name) => ["properties", "person"].includes(fold(name))) ||
    propertyColumns.test(names.at(-1) ?? "");
  if (column.alias === "" && isRenamed) column.alias = names.at(-1);
  const name = steps.has(String(column.type)) ? getConstant((column.children as Node[])[1]) : undefined;
  if (column.alias === "" && typeof name === "string") column.alias = name;
}

/** `properties['a b']`, and further steps of a property. */
function member(node: Node): Node {
  const [of, key] = node.children as [Node, Node];
  const name = getConstant(key);
  if (typeof name !== "string") return node;
  const columns: readonly string[] = ["properties", personColumns.properties];
  const names = (of.class === "COLUMN_REF" ? of.column_names : []) as string[];
  if (columns.includes(fold(names.at(-1) ?? ""))) return property(of, [name]);
  if (!isText(of)) return node;
  const [column, pointer] = of.children as [Node, Node];
  return jsonString(column, `${String(getConstant(pointer))}${pointerTo(name)}`);
}

const property = (column: Node, names: readonly string[]): Node =>
  jsonString(column, names.map(pointerTo).join(""));

/** Copies a template, with arguments for `_1` and the pointer for `$1`. */
function substitute(part: unknown, args: readonly Node[], pointer: Node | undefined): unknown {
  if (Array.isArray(part)) return part.map((entry) => substitute(entry, args, pointer));
  if (typeof part !== "object" || part === null || !Object.getPrototypeOf(part)) return part;
  const names = (part as Node).class === "COLUMN_REF" ? ((part as Node).column_names as string[]) : [];
  const at = names.length === 1 ? /^_(\d+)$/.exec(names[0]!)?.[1] : undefined;
  if (at === "999") return copy(pointer);
  if (at !== undefined) return copy(args[Number(at) - 1]!);
  const copied = Object.entries(part).map(([name, child]) => [name, substitute(child, args, pointer)]);
  const result = Object.fromEntries(copied) as Node;
  if (typeof result.class === "string") coerceProperties(result);
  return result;
}
