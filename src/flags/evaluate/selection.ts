/** Selects the flags of a request. Source: contract, flag-evaluation 5.1 to 5.4. */

import { surveyFlagPrefix } from "../rules/types.ts";
import { withDependencies } from "./dependency-order.ts";
import type { CompiledFlag, FlagSelection, FlagSet, RequestRuntime } from "./model.ts";

/** Why a selection excludes a flag. */
export type Exclusion = "survey_switch" | "runtime" | "contexts" | "flag_keys";

/** The active flags of a selection, dependencies first. */
export function selectFlags(set: FlagSet, selection: FlagSelection | undefined): readonly CompiledFlag[] {
  if (selection === undefined) return set.active;
  const { flagKeys, contexts: names, surveysOnly, runtime } = selection;
  if (!flagKeys?.length && !names?.length && !surveysOnly) return flagsOfRuntime(set, runtime);
  const wanted = idsOfKeys(set, selection.flagKeys);
  const contexts = contextSet(selection);
  return set.active.filter((flag) => exclusion(flag, selection, contexts, wanted) === undefined);
}

/** Why a flag is not selected; undefined when it is. */
export function getExclusion(
  set: FlagSet,
  flag: CompiledFlag,
  selection: FlagSelection | undefined,
): Exclusion | undefined {
  if (selection === undefined) return undefined;
  return exclusion(flag, selection, contextSet(selection), idsOfKeys(set, selection.flagKeys));
}

function exclusion(
  flag: CompiledFlag,
  selection: FlagSelection,
  contexts: ReadonlySet<string> | undefined,
  wanted: ReadonlySet<number> | undefined,
): Exclusion | undefined {
  if (selection.surveysOnly && !flag.key.startsWith(surveyFlagPrefix)) return "survey_switch";
  if (!runsIn(flag, selection.runtime)) return "runtime";
  if (contexts && flag.contexts.length > 0 && !flag.contexts.some((tag) => contexts.has(tag)))
    return "contexts";
  return wanted === undefined || wanted.has(flag.id) ? undefined : "flag_keys";
}

/** Cached per set: nearly all requests select by runtime alone. */
const flagsByRuntime = new WeakMap<FlagSet, Map<string, readonly CompiledFlag[]>>();

function flagsOfRuntime(set: FlagSet, runtime: RequestRuntime | null | undefined): readonly CompiledFlag[] {
  if (runtime === undefined || runtime === null || runtime === "all") return set.active;
  let lists = flagsByRuntime.get(set);
  if (lists === undefined) {
    lists = new Map();
    flagsByRuntime.set(set, lists);
  }
  let flags = lists.get(runtime);
  if (flags === undefined) {
    flags = set.active.filter((flag) => runsIn(flag, runtime));
    lists.set(runtime, flags);
  }
  return flags;
}

function runsIn(flag: CompiledFlag, runtime: RequestRuntime | null | undefined): boolean {
  if (runtime === undefined || runtime === null || runtime === "all") return true;
  return flag.runtime === "all" || flag.runtime === runtime;
}

function contextSet({ contexts }: FlagSelection): ReadonlySet<string> | undefined {
  return contexts && contexts.length > 0 ? new Set(contexts) : undefined;
}

function idsOfKeys(
  set: FlagSet,
  keys: readonly string[] | null | undefined,
): ReadonlySet<number> | undefined {
  if (!keys || keys.length === 0) return undefined;
  const requested = keys.flatMap((key) => set.byKey.get(key)?.id ?? []);
  return withDependencies(requested, set.byId);
}

/** Runtime hints of a request. Header values are undefined or null when the header is absent. */
export interface RuntimeHints {
  /** `evaluation_runtime` of the body. */
  stated?: unknown;
  userAgent?: string | null;
  /** Whether the request has `Origin`, `Referer` or any `Sec-Fetch-…` header. */
  hasBrowserHeaders?: boolean;
}

const browserAgent = /Mozilla\/|Chrome\/|Safari\/|Firefox\/|Edge\//;
// Extends the contract's list by the JVM and Rust server libraries, Ruby's without a slash in flag requests, a library
// that instruments MCP servers, and the HTTP client name of Elixir's. Otherwise they would miss flags.
const serverAgent =
  /^posthog-(?:python|ruby|php|java|go|node|dotnet|elixir|server|rs|rust)(?:-mcp)?\/|^posthog-ruby\d|^req\/|python-requests\/|curl\//;
const mobileAgent = /^posthog-(?:android|ios|react-native|flutter)\//;

/** The runtime of a request: from the body, else from its headers, else unknown. */
export function detectRuntime(hints: RuntimeHints): RequestRuntime {
  const { stated } = hints;
  if (stated === "all" || stated === "client" || stated === "server") return stated;
  const agent = hints.userAgent ?? "";
  if (browserAgent.test(agent)) return "client";
  if (serverAgent.test(agent)) return "server";
  if (mobileAgent.test(agent)) return "client";
  return hints.hasBrowserHeaders ? "client" : "unknown";
}
