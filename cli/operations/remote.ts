/** Runs operations on a server, over its API. */

import { AppError, InvalidFieldError } from "../../src/lib/errors.ts";
import { parseExactJson } from "../../src/lib/json/exact.ts";
import { InvalidSettingError } from "../../src/lib/setting-types.ts";
import {
  type Caller,
  getQuery,
  type Members,
  type Operation,
  otherMembers,
  pathMembers,
  sendsQuery,
} from "../../src/operations/operation.ts";
import type { CallOptions, Server } from "./server.ts";

const pageSize = 500;
const timeoutMs = 60_000;

/** `--url` does not respond, or is not a Flagkeep server. */
export class RemoteServerError extends AppError {
  readonly code = "server_unreachable";
  override readonly hint = "Check --url, and that the server runs.";
}

/** The server rejected the request. */
class RemoteRequestError extends AppError {
  constructor(
    readonly code: string,
    detail: string,
    override readonly hint?: string,
  ) {
    super(detail);
  }
}

/** Options that only the operator at the data directory has. */
const localOptions = [
  ["user", "on a server, the user of the key is the creator"],
  ["confirm", "on a server, changes of protected flags need a change request"],
] as const;

/** @throws {InvalidSettingError} an option that only a data directory has. */
export function remoteCaller(server: Server, options: CallOptions): Caller {
  for (const [name, consequence] of localOptions) {
    if (options[name] !== undefined)
      throw new InvalidSettingError(`--${name} needs the data directory: ${consequence}.`);
  }
  const call = (operation: Operation, input: Members) => request(server, operation, options, input);
  return {
    call,
    list: async (operation, input = {}) => {
      const all: unknown[] = [];
      for (;;) {
        const page = { limit: pageSize, offset: all.length };
        const { count, results } = (await call(operation, { ...input, ...page })) as {
          count: number;
          results: unknown[];
        };
        all.push(...results);
        if (results.length === 0 || all.length >= count) return all;
      }
    },
    in: (project) => remoteCaller(server, { ...options, project }),
    callAll: async (operation, inputs) => {
      const outputs: unknown[] = [];
      for (const input of inputs) outputs.push(await call(operation, input));
      return outputs;
    },
  };
}

async function request(
  server: Server,
  operation: Operation,
  options: CallOptions,
  input: Members,
): Promise<unknown> {
  const inPath = pathMembers(operation);
  const others = Object.entries(input).filter(([name]) => !inPath.includes(name));
  const inQuery = sendsQuery(operation);
  const body = operation.http.takesRawBody ? input.body : Object.fromEntries(others);
  const query = inQuery ? `?${getQuery(Object.fromEntries(others))}` : "";
  const hasBody = !inQuery && (otherMembers(operation).length > 0 || others.length > 0);
  const response = await send(server, `${getPath(operation, options, input)}/${query}`, {
    method: operation.http.method,
    ...(hasBody ? { headers: jsonBody, body: JSON.stringify(body) } : {}),
    signal: AbortSignal.timeout(timeoutMs),
  });
  const text = await response.text();
  return text === "" ? undefined : parsed(server, text);
}

/**
 * Runs a query of a project. The server limits its time.
 *
 * @param accept the type of the file; absent: JSON.
 */
export async function postQuery(
  server: Server,
  options: CallOptions,
  body: object,
  accept?: string,
): Promise<Response> {
  return await send(server, `${ownerPath("project", options)}/query/`, {
    method: "POST",
    headers: { ...jsonBody, ...(accept === undefined ? {} : { Accept: accept }) },
    body: JSON.stringify(body),
  });
}

/** Figures of the server itself, for its operators. @param path below `/api/instance` */
export async function getFromInstance(server: Server, path: string, maxMs = timeoutMs): Promise<unknown> {
  return await callInstance(server, path, { signal: AbortSignal.timeout(maxMs) });
}

/** Starts work of the server itself, for its operators. @param path below `/api/instance` */
export async function postToInstance(server: Server, path: string): Promise<unknown> {
  return await callInstance(server, path, { method: "POST", signal: AbortSignal.timeout(timeoutMs) });
}

async function callInstance(server: Server, path: string, init: RequestInit): Promise<unknown> {
  const response = await send(server, `/api/instance${path}/`, init);
  return parsed(server, await response.text());
}

const jsonBody = { "Content-Type": "application/json" };

/** @throws {RemoteServerError} @throws {AppError} the server rejected the request. */
async function send(server: Server, path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(server.url + path, {
      ...init,
      headers: { Authorization: `Bearer ${server.key}`, ...(init.headers as Record<string, string>) },
    });
  } catch (error) {
    throw new RemoteServerError(`${server.url} does not respond (${(error as Error).message}).`);
  }
  if (!response.ok) throw rejection(server, response.status, await response.text());
  return response;
}

function ownerPath(on: Operation["on"], { organization, project }: CallOptions): string {
  return {
    user: "",
    organization: `/api/organizations/${encodeURIComponent(organization ?? "@current")}`,
    project: `/api/projects/${project ?? "@current"}`,
  }[on];
}

function getPath({ on, http }: Operation, options: CallOptions, input: Members): string {
  const path = http.path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(input[name])));
  return ownerPath(on, options) + path;
}

/** @throws {RemoteServerError} */
export function parsed({ url }: Server, text: string): unknown {
  try {
    return parseExactJson(text);
  } catch {
    throw new RemoteServerError(`${url} is not a Flagkeep server: its response is not JSON.`);
  }
}

/** The error that the operation would throw in the data directory. */
function rejection(server: Server, status: number, text: string): AppError {
  const { type, code, detail, attr } = parsed(server, text) as Record<string, string | null>;
  if (typeof detail !== "string" || typeof code !== "string")
    return new RemoteServerError(`${server.url} is not a Flagkeep server: it answered ${status}.`);
  if (type === "validation_error") return new InvalidFieldError(attr ?? null, code, detail);
  const hint = status === 401 ? "Check --key or FLAGKEEP_API_KEY." : undefined;
  return new RemoteRequestError(code, detail, hint);
}
