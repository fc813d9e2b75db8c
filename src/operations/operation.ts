/**
 * One user action as data. The route, its documentation, the command and the tool of MCP are derived from it.
 *
 * `run` knows nothing of HTTP or the command line: it gets stores, the actor and checked input.
 * Source: docs/decisions/26-table-of-operations.md.
 */

import type { Static, TObject, TProperties, TSchema } from "@sinclair/typebox";
import type { Author } from "../accounts/activity.ts";
import { type KeyRestrictions, unlimited } from "../accounts/limits.ts";
import type { Organization } from "../accounts/organizations.ts";
import type { PersonalKey } from "../accounts/personal-keys.ts";
import type { Project } from "../accounts/project-directory.ts";
import type { Scope } from "../accounts/route-scopes.ts";
import type { User } from "../accounts/users.ts";
import type { SettingName } from "../config/settings.ts";
import type { Page } from "../http/pagination.ts";
import type { Method, ResponseSpec } from "../http/route.ts";
import type { JsonObject } from "../lib/json/value.ts";

/** Who acts: a user within the limits of a key or session, or the operator at the data directory, who may do everything. */
export type Actor =
  | {
      readonly kind: "user";
      readonly user: User;
      readonly limits: KeyRestrictions;
      /** The personal key of the request, or of its session. */
      readonly keyId: string | null;
      /** The personal key of the request; absent in a session. */
      readonly key?: PersonalKey;
      /** An unrestricted key, or such a session with password re-authentication. */
      readonly seesCredentials: boolean;
    }
  | {
      readonly kind: "operator";
      readonly author: Author;
      /** E-mail address of the user for whom the operator acts. */
      readonly userEmail?: string | undefined;
      /** Applies changes of protected flags without a change request. */
      readonly skipsApproval?: boolean;
    };

/** What `run` works with. @typeParam Stores what the subject reads and writes. */
export interface Context<Stores> {
  readonly stores: Stores;
  readonly actor: Actor;
  readonly now: Date;
  /** URL by which browsers reach the server, without a trailing slash; a command asks the running server for it. */
  readonly baseUrl: () => string | Promise<string>;
}
export interface OrganizationContext<Stores> extends Context<Stores> {
  readonly organization: Organization;
}
export interface ProjectContext<Stores> extends Context<Stores> {
  readonly project: Project;
}

/** What an operation belongs to, which is the beginning of its path: `/api/organizations/:organization_id` and so on. */
export type Owner = "user" | "organization" | "project";

export interface OperationHttp {
  method: Method;
  /** Below the owner; its `:members` are members of `input`. */
  path: string;
  /** Of success; default: 200, and 204 without an output. A function of the output documents 200. */
  status?: number | ((output: never) => number);
  /** Complete alternative paths. */
  aliases?: readonly string[];
  /** Describes the successful response. */
  answer?: string;
  /** Other responses that the route's kind does not imply. */
  errors?: Record<number, ResponseSpec>;
  /** A key that is restricted to projects may be used (owner `user`). */
  allowsScopedKeys?: true;
  /** The key must have all permissions of its user (owner `user`). */
  needsFullAccess?: true;
  /** Scopes that are required in addition (owner `project`). */
  alsoNeeds?: readonly Scope[];
  /** Also finds archived projects (owner `project`). */
  takesArchived?: true;
  /** The response contains a new credential or, if `shown`, existing ones; or the change grants permissions. */
  makesCredential?: true | "shown" | ((context: never, input: never) => boolean);
  /** Whether a session must have re-authenticated recently. */
  requiresReauthentication?: true | ((input: Members) => boolean);
  /** Waits for another process, so that it must not block other requests. */
  isLongRunning?: true;
  /** `run` gets the body as it was sent, unchecked, as its member `body`. */
  takesRawBody?: true;
}

/** A tool of MCP. */
export interface ToolForm {
  name: string;
  /** Default: the operation's summary. */
  description?: string;
  /** Schemas of the arguments in addition to the project and the page; default: the members of the input. */
  arguments?: TProperties;
  /** Members that every call of the tool sends. */
  fixed?: Members;
  target?: ToolTarget;
  /** Default: read-only for GET. */
  hints?: { destructiveHint?: boolean; idempotentHint?: boolean };
  /** Page size of a list; default: 20. */
  limitDefault?: number;
}

/** An argument that names the record of the path, such as a flag by its key. */
export interface ToolTarget {
  argument: string;
  /** Member of the path. */
  member: string;
  /** Absent: the argument is the value. */
  lookup?: {
    in: () => Operation;
    /** Inputs of that list, in order; the first match counts. @param given the arguments */
    searches(given: Members): Members[];
    matches(record: never, given: Members): boolean;
    /** The value of the member. */
    value(record: never): unknown;
    /** What is wrong when no record matches. */
    missing(given: Members): string;
  };
}

/** What the declarations of all operations have. */
export interface OperationBase<Input extends TObject, Output extends TSchema | undefined> {
  /** Such as `roles.update`. */
  id: string;
  on: Owner;
  /** What a key must have, of several any one (owner `project`); undefined: any key may. */
  scope?: Scope | readonly Scope[];
  /** Section of the documentation. */
  tag: string;
  summary: string;
  description?: string;
  http: OperationHttp;
  cli?: CommandForm<Static<Input>>;
  /** The tools of MCP; absent: none. */
  mcp?: ToolForm | readonly ToolForm[];
  /** Members of the path, and of the query (GET) or the body. */
  input: Input;
  inputExample?: unknown;
  /** Absent: nothing is returned. */
  output?: Output;
  /** Of the output; of a list, of one of its results. */
  example?: unknown;
}

/** An operation of unknown input and output, as the adapters see it. */
export interface Operation<
  Input extends TObject = TObject,
  Output extends TSchema | undefined = TSchema | undefined,
> extends OperationBase<Input, Output> {
  /** Whether the output is a page: `run` gets a limit and an offset, and returns some of the results. */
  readonly isList: boolean;
  /** Whether the output is a page that names the members of the next one, without a count. */
  readonly isCursorList: boolean;
  /** Maximum page size of a list that is computed from events; absent: none. */
  readonly pageSizeMax?: number;
  /** The file of a list that clients get with `Accept: text/csv`. */
  readonly csv?: CsvForm;
  /** Reads the query of a request; its members are part of what `run` gets. */
  readonly readQuery?: (query: URLSearchParams) => object;
  run(context: never, input: never): unknown;
}

/** All results as CSV; the first row has the headings. */
export interface CsvForm<On = never, Query = never> {
  fileName: string;
  rows(context: On, input: Query): AsyncIterable<readonly (string | number | boolean | null)[]>;
}

export type Input<Of extends Operation> = Static<Of["input"]>;
export type Output<Of extends Operation> =
  Of extends Operation<TObject, infer Schema> ? (Schema extends TSchema ? Static<Schema> : undefined) : never;

/** What `run` gets where it reads the body itself: members of the path, and the body. */
export interface RawInput {
  id: number;
  body: JsonObject;
}

type Returned<Output> = Output extends TSchema
  ? Static<Output> | Promise<Static<Output>>
  : void | Promise<void>;

/** Declares an operation. */
export function operation<
  On extends Context<unknown>,
  Input extends TObject,
  Output extends TSchema | undefined = undefined,
  Raw extends true | undefined = undefined,
  Query extends object = object,
>(
  declared: OperationBase<Input, Output> & {
    http: { takesRawBody?: Raw };
    readQuery?: (query: URLSearchParams) => Query;
    run: (context: On, input: Raw extends true ? RawInput : Static<Input> & Query) => Returned<Output>;
  },
): Operation<Input, Output> {
  return { ...declared, isList: false, isCursorList: false };
}

type ResultOf<Output> = Output extends { results: (infer Result)[] } ? Result : never;

interface ListResult<Output extends TSchema> {
  count: number;
  results: ResultOf<Static<Output>>[];
}

/** One page of a list that is in memory. @param toResult formats an item */
export function slicePage<Item, Result>(
  all: readonly Item[],
  { limit, offset }: Page,
  toResult: (item: Item) => Result,
): { count: number; results: Result[] } {
  return { count: all.length, results: all.slice(offset, offset + limit).map((item) => toResult(item)) };
}

/** Declares an operation that lists: in pages over HTTP, all results on the command line. */
export function listOperation<
  On extends Context<unknown>,
  Input extends TObject,
  Output extends TSchema,
  Query extends object = Static<Input>,
>(
  declared: OperationBase<Input, Output> & {
    readQuery?: (query: URLSearchParams) => Query;
    pageSizeMax?: number;
    csv?: CsvForm<On, Query>;
    run: (context: On, input: Query & Page) => ListResult<Output> | Promise<ListResult<Output>>;
  },
): Operation<Input, Output> {
  return { ...declared, isList: true, isCursorList: false };
}

/** A page without a count. Its neighbors are members of the input that differ from this page's; null: there is none. */
export interface CursorPage<Result> {
  next: Members | null;
  previous: Members | null;
  results: Result[];
}

/** The member `:id` of a path, which is no part of the query. */
type PathId<Input> = Pick<Input, "id" & keyof Input>;

/** Declares an operation that lists by a cursor; over HTTP, `next` and `previous` are links. */
export function cursorListOperation<
  On extends Context<unknown>,
  Input extends TObject,
  Output extends TSchema,
  Query extends object = Static<Input>,
>(
  declared: OperationBase<Input, Output> & {
    readQuery?: (query: URLSearchParams) => Query;
    run: (
      context: On,
      input: Query & PathId<Static<Input>>,
    ) => CursorPage<ResultOf<Static<Output>>> | Promise<CursorPage<ResultOf<Static<Output>>>>;
  },
): Operation<Input, Output> {
  return { ...declared, isList: false, isCursorList: true };
}

/** The names in a path such as `/roles/:id`. */
export function pathMembers({ http }: Operation): string[] {
  return [...http.path.matchAll(/:(\w+)/g)].map(([, name]) => name!);
}

/** The members of the input that are not in the path. */
export function otherMembers(operation: Operation): [name: string, schema: TSchema][] {
  const inPath = pathMembers(operation);
  return Object.entries(operation.input.properties).filter(([name]) => !inPath.includes(name));
}

/** Whether the members outside of the path are sent in the query, not in a body. */
export const sendsQuery = ({ http: { method } }: Operation) => method === "GET" || method === "DELETE";

/** Members of an input as the query of a request; objects and lists as JSON. */
export function getQuery(members: Members): URLSearchParams {
  const texts = Object.entries(members).map(([name, value]) => [
    name,
    typeof value === "object" ? JSON.stringify(value) : String(value),
  ]);
  return new URLSearchParams(texts as [string, string][]);
}

/** Limits of the actor's key or session; the operator has none. */
export function getLimits(actor: Actor): KeyRestrictions {
  return actor.kind === "user" ? actor.limits : unlimited;
}

/** The user that the activity log names. */
export function getAuthor(actor: Actor): Author {
  return actor.kind === "user" ? actor.user.id : actor.author;
}

export type Members = Record<string, unknown>;

/** `run` of any operation, as the adapters call it. */
export type Run = (context: object, input: Members) => unknown;

/** Runs another operation in the same place, a data directory or a server. */
export interface Caller {
  call(operation: Operation, input: Members): Promise<unknown>;
  /** Every result of a list. */
  list(operation: Operation, input?: Members): Promise<unknown[]>;
  /** The same for a project, whatever the command was called for. */
  in(projectId: number): Caller;
  /** Runs an operation for several inputs: in a data directory for all of them or none, on a server one by one. */
  callAll(operation: Operation, inputs: readonly Members[]): Promise<unknown[]>;
}

/** Finds the record that an argument names, such as a role by its name. */
export interface Lookup {
  /** The list that is searched. */
  in: () => Operation;
  /** The input of that list. @param found records of earlier arguments, by the names of the arguments. */
  input?(found: Members, argument: string): Members;
  matches(record: never, argument: string): boolean;
  /** The value of the operation's member. */
  value(record: never): unknown;
  /** What is wrong when no record matches: a sentence, or an error with a hint. */
  missing(argument: string, found: never): string | Error;
}

/** A positional argument, which is one member of the operation's input. */
export interface CommandArgument {
  name: string;
  description: string;
  member: string;
  /** A positive integer. */
  isNumber?: true;
  /** Absent: the argument is the value. */
  lookup?: Lookup;
}

/** An option for a member whose name, values or help differ from the API's. */
export interface CommandOption {
  /** Such as `--flags-access <level>`; default: from the member. */
  flags?: string;
  /** Default: from the member. */
  description?: string;
  choices?: readonly string[];
  /** Turns what was typed into the member's value. */
  parse?(argument: string): unknown;
  isRequired?: true;
}

/** What a command prints when it is not the operation's output. */
export interface CommandResult {
  schema: TSchema;
  build(result: { output: never; found: never; input: never }, caller: Caller): unknown;
}

/** A command. Members of the input that are no arguments are options, with descriptions from the schema. */
export interface CommandForm<Input = never> {
  /** Such as `roles add-member`. */
  name: string;
  /** A sentence; default: the operation's summary. */
  description?: string;
  /** Behind `flagkeep `. */
  examples: readonly string[];
  arguments?: readonly CommandArgument[];
  options?: { readonly [Member in keyof Input]?: CommandOption };
  /** Settings of the server that apply in a data directory too, as options. */
  settings?: readonly SettingName[];
  /** `--file` reads members of the input from YAML or JSON; arguments and options take precedence. */
  hasFile?: true;
  /** Members that the command adds. @param found records of the arguments, by their names */
  adds?(found: never): Members;
  /** `--user` names the creator of what the command creates. */
  hasCreator?: true;
  /** `--confirm` applies changes of protected flags. */
  hasConfirm?: true;
  /** `--user` names the user who acts. */
  hasActingUser?: true;
  result?: CommandResult;
  /** Members that `--json` had before it was the API's response; they stay for one version. */
  formerJson?: { properties: TProperties; build(record: never): Members };
  /** One sentence for people. @param result what `--json` prints. */
  done?(result: never): string;
  /** Lists: the columns and cells for people. */
  table?: { headings: readonly string[]; row(result: never): readonly string[] };
}
