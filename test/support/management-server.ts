/** The management API in this process, on a data directory that goes away with the test. */

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getGuard } from "../../src/accounts/api/guard.ts";
import { type Initialized, initialize } from "../../src/accounts/initialize.ts";
import { type Metadata, openMetadata } from "../../src/accounts/metadata.ts";
import { createKey, type NewKey } from "../../src/accounts/personal-keys.ts";
import { FlagSets, groupTypesFrom } from "../../src/flags/store/flag-sets.ts";
import { type AppDeps, createApp } from "../../src/http/app.ts";
import { type OpenApiDocument, openApiDocument } from "../../src/http/openapi.ts";
import type { Route } from "../../src/http/route.ts";
import { TrustedProxies } from "../../src/http/trusted-proxies.ts";
import { secretCipher } from "../../src/lib/sealed-text.ts";
import { SqliteIngestionReader } from "../../src/persons/ingestion-reader.ts";
import { openPersons, type PersonsDb } from "../../src/persons/open.ts";
import { SqlitePersonReader } from "../../src/persons/sqlite-person-reader.ts";
import { type ManagementDeps, managementRoutes } from "../../src/serve/routes.ts";
import { getError } from "../http/json-schema.ts";
import { plainPayloads } from "./payloads.ts";

/** A folder in memory where there is one: hundreds of small stores are synced to disk otherwise. */
const memory = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  body: any;
  headers: Headers;
}

export interface Asking {
  /** Bearer key; null for none, absent for the first key, which may do everything. */
  key?: string | null;
  body?: unknown;
  headers?: Record<string, string>;
}

export class TestServer implements Disposable {
  readonly metadata: Metadata;
  readonly first: Initialized;
  readonly logged: Record<string, unknown>[] = [];
  readonly deps: ManagementDeps & { people: PersonsDb };
  readonly app: ReturnType<typeof createApp>;
  readonly routes: readonly Route[];
  private document: OpenApiDocument | undefined;
  readonly directory = mkdtempSync(join(memory, "flagkeep-management-"));
  /** What the server takes for the present; tests move it. */
  now = new Date("2026-03-01T12:00:00.000Z");
  isReady = true;

  constructor(options: Partial<AppDeps> & { deps?: Partial<ManagementDeps & { people: PersonsDb }> } = {}) {
    this.metadata = openMetadata(this.path);
    this.first = initialize(
      this.metadata,
      { organization: "Acme", project: "Shop", email: "ann@example.com" },
      this.now,
    );
    const people = openPersons(join(this.directory, "people.sqlite"));
    this.deps = {
      metadata: this.metadata,
      people,
      persons: new SqlitePersonReader(options.deps?.people ?? people),
      ingestion: new SqliteIngestionReader(options.deps?.people ?? people),
      flagSets: new FlagSets(this.metadata, groupTypesFrom(people)),
      payloads: plainPayloads,
      secrets: secretCipher(Buffer.alloc(32, 1)),
      webhookAddresses: { allowed: [], resolve: async () => ["93.184.215.14"] },
      personCounter: {
        blastRadius: async () => ({ total: 0, matching: 0, reached: 0, sets: [] }),
        find: async () => [],
        flagCalls: async () => ({ days: [], flags: [] }),
      },
      eraser: {
        erase: () => Promise.reject(new Error("No journal here.")),
      },
      cohortFiller: {
        addPersonsWithFlag: async () => 0,
        addExposedPersons: async () => 0,
        addDistinctIds: async (_, __, ids) => ids.length,
        countMembers: async () => 0,
        members: async () => [],
      },
      log: { error: (facts, message) => this.logged.push({ ...facts, message }) },
      ...options.deps,
    };
    this.routes = [...managementRoutes(this.deps), ...(options.routes ?? [])];
    this.app = createApp({
      guard: getGuard(this.metadata),
      log: { error: (facts, message) => this.logged.push({ ...facts, message }) },
      routes: this.routes,
      roles: () => [{ role: "query", ready: this.isReady, reason: this.isReady ? null : "starting" }],
      now: () => this.now,
      ...(options.rateLimiter ? { rateLimiter: options.rateLimiter } : {}),
      ...(options.shared ? { shared: options.shared } : {}),
      origins: new TrustedProxies([], options.publicUrl),
    });
  }

  get path(): string {
    return join(this.directory, "metadata.sqlite");
  }

  /**
   * Sends one request; a body that is neither text nor bytes is sent as JSON.
   *
   * @throws when the answer is not the one that the OpenAPI document promises.
   */
  async ask(method: string, path: string, asking: Asking = {}): Promise<Answer> {
    const headers = new Headers(asking.headers);
    const key = asking.key === undefined ? this.first.personal_api_key : asking.key;
    if (key !== null) headers.set("authorization", `Bearer ${key}`);
    const isReady =
      asking.body === undefined ||
      asking.body instanceof FormData ||
      asking.body instanceof Uint8Array ||
      typeof asking.body === "string";
    const body = isReady ? asking.body : JSON.stringify(asking.body);
    if (typeof body === "string" && !headers.has("content-type")) {
      headers.set("content-type", "application/json");
    }
    const response = await this.app.handle(
      new Request(`http://localhost${path}`, { method, headers, body: body as never }),
    );
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json") === true;
    const parsed = isJson && text !== "" ? JSON.parse(text) : text;
    if (isJson && text !== "") this.checkPromise(method, path, response.status, parsed);
    return { status: response.status, body: parsed, headers: response.headers };
  }

  private checkPromise(method: string, path: string, status: number, body: unknown): void {
    const pathname = new URL(path, "http://localhost").pathname.replace(/\/$/, "");
    const known = this.routes
      .flatMap((route) => [route.path, ...route.aliases].map((known) => ({ route, known })))
      .filter(({ known }) => getPattern(known).test(pathname))
      .sort((a, b) => a.known.split(":").length - b.known.split(":").length);
    const exact = known.filter((candidate) => candidate.known === known[0]?.known);
    const route = exact.find((candidate) => candidate.route.method === method)?.route;
    if (!route) return;
    this.document ??= openApiDocument(this.routes, "/");
    const { paths, components } = this.document;
    const operation = paths[`${route.path.replace(/:(\w+)/g, "{$1}")}/`]![method.toLowerCase()]!;
    const promised = operation.responses[status];
    // A rejection that every route may return is documented once.
    if (!promised && [400, 413, 415, 500].includes(status)) return;
    if (!promised) throw new Error(`${method} ${route.path} answered ${status}, which is not documented.`);
    const content = (promised.content as Record<string, { schema: never }> | undefined)?.["application/json"];
    const problem = content && getError(body, content.schema, components.schemas);
    if (problem) throw new Error(`${method} ${route.path} answered ${status} with ${problem}`);
  }

  /** A key of the first user with these scopes. */
  key(scopes: readonly string[], limits: Partial<NewKey> = {}): string {
    return createKey(
      this.metadata,
      { userEmail: "ann@example.com", label: "test", scopes, ...limits },
      { now: this.now },
    ).value;
  }

  [Symbol.dispose](): void {
    this.metadata.close();
    this.deps.people.$client.close();
    rmSync(this.directory, { recursive: true });
  }
}

export const flagsPath = "/api/projects/1/feature_flags/";
/** Where the first flag of a project is. */
export const firstFlagPath = `${flagsPath}1/`;

/** A server with one flag, `pay`. */
export async function withFlag(body: object = {}) {
  const server = new TestServer();
  const { status, body: flag } = await server.ask("POST", flagsPath, {
    body: { key: "pay", name: "a", ...body },
  });
  if (status !== 201) throw new Error(`The flag was refused: ${JSON.stringify(flag)}`);
  const patch = (change: object, key?: string) => server.ask("PATCH", firstFlagPath, { body: change, key });
  return { server, flag, patch, [Symbol.dispose]: () => server[Symbol.dispose]() };
}

/** A server with some flags, made a second apart. */
export async function withFlags(...bodies: object[]) {
  const server = new TestServer();
  for (const body of bodies) {
    server.now = new Date(server.now.getTime() + 1_000);
    const created = await server.ask("POST", flagsPath, { body });
    if (created.status !== 201) throw new Error(`The flag was refused: ${JSON.stringify(created.body)}`);
  }
  return server;
}

function getPattern(path: string): RegExp {
  return new RegExp(`^${path.replace(/:\w+/g, "[^/]+")}$`);
}
