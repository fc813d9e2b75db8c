/**
 * What client libraries fetch before and beside flags: their configuration, the browser library, and empty lists of
 * features that are not offered here. Source: contract, sdk-compat 2.4, 4.6 to 4.8; flag-evaluation 15.
 */

import { Elysia } from "elysia";
import { publicCorsHeaders, publicPreflight } from "../../http/cors.ts";
import { failureAnswer, methodNotAllowed } from "../../http/decode/answers.ts";
import { browserFiles, browserLibraryVersion } from "./browser-files.ts";
import { clientConfig } from "./client-config.ts";
import type { EvaluationDependencies } from "./ports.ts";
import { fileAnswer, type PublicFile, publicFile } from "./public-files.ts";

type Cors = Readonly<Record<string, string>>;
type Answer = (request: Request, cors: Cors, params: Record<string, string>) => Response | Promise<Response>;

const methods = "GET, HEAD, OPTIONS";
const configSeconds = 60;
const librarySeconds = 300;
/** A file under the version it has never changes. */
const versionedSeconds = 365 * 86_400;
const scriptType = "application/javascript; charset=utf-8";
const jsonType = "application/json";
const versionForm = /^\d+\.\d+\.\d+[\w.+-]*$/;

/** Answers that say "none of these here", so that libraries go on. */
const emptyLists: readonly (readonly [string, string])[] = [
  ["/api/surveys", '{"surveys":[]}'],
  ["/api/early_access_features", '{"earlyAccessFeatures":[]}'],
  ["/api/web_experiments", '{"experiments":[]}'],
  ["/api/product_tours", '{"product_tours":[]}'],
];

/** Configuration, library files and empty lists as one plugin. */
export function assetRoutes({ projects, onTrouble }: Pick<EvaluationDependencies, "projects" | "onTrouble">) {
  const files = new Map<string, Promise<PublicFile>>();
  const configs = new Map<string, ConfigFiles>();

  const libraryFile = (name: string): Promise<PublicFile> | undefined => {
    const path = browserFiles.get(name);
    if (path === undefined) return undefined;
    let file = files.get(name);
    if (file === undefined) {
      file = readLibraryFile(name, path);
      files.set(name, file);
    }
    return file;
  };
  const config = (form: keyof ConfigFiles): Answer => {
    return (request, cors, { token = "" }) => {
      if (projects.findByToken(token) === undefined) return notFound(cors);
      let known = configs.get(token);
      if (known === undefined) {
        known = configFiles(token);
        configs.set(token, known);
      }
      return fileAnswer(request, known[form], configSeconds, cors);
    };
  };
  const library: Answer = async (request, cors, { "*": path = "" }) => {
    const [name = "", version, ...more] = path.split("/").reverse();
    const isVersioned = version !== undefined;
    if (more.length > 0 || (isVersioned && !versionForm.test(version))) return notFound(cors);
    const file = await libraryFile(name);
    if (file === undefined) return notFound(cors);
    const seconds = version === browserLibraryVersion ? versionedSeconds : librarySeconds;
    return fileAnswer(request, file, seconds, cors);
  };
  const ownLibrary: Answer = (request, cors, { token = "" }) =>
    projects.findByToken(token) === undefined ? notFound(cors) : library(request, cors, { "*": "array.js" });

  const routes: (readonly [string, Answer])[] = [
    ["/array/:token/config", config("json")],
    ["/array/:token/config/", config("json")],
    ["/array/:token/config.js", config("script")],
    ["/array/:token/array.js", ownLibrary],
    ["/static/*", library],
    ...emptyLists.flatMap(([path, body]) => {
      const answer: Answer = (_, cors) =>
        new Response(body, { headers: { "Content-Type": jsonType, ...cors } });
      return [
        [path, answer],
        [`${path}/`, answer],
      ] as const;
    }),
  ];
  const app = new Elysia({ name: "assets" });
  for (const [path, answer] of routes) {
    const reading = readingOnly(answer, onTrouble);
    app.all(path, ({ request, params }) => reading(request, params as Record<string, string>), {
      parse: "none",
      detail: { hide: true },
    });
  }
  return app;
}

interface ConfigFiles {
  /** As a document. */
  json: PublicFile;
  /** As a script that leaves it where the library looks for it. */
  script: PublicFile;
}

function configFiles(token: string): ConfigFiles {
  const text = JSON.stringify(clientConfig(token));
  const all = "window._POSTHOG_REMOTE_CONFIG";
  // Pages may talk to several projects: what others have set stays.
  const script = `(function(){${all}=${all}||{};${all}[${JSON.stringify(token)}]={"config":${text},"siteApps":[]};})();\n`;
  return { json: publicFile(jsonType, text), script: publicFile(scriptType, script) };
}

async function readLibraryFile(name: string, path: string): Promise<PublicFile> {
  const contentType = name.endsWith(".js") ? scriptType : "text/plain; charset=utf-8";
  return publicFile(contentType, await Bun.file(path).bytes());
}

/** GET, HEAD and a browser's question; every answer can be read by a page on another origin. */
function readingOnly(answer: Answer, onTrouble: (error: unknown) => void) {
  return async (request: Request, params: Record<string, string>): Promise<Response> => {
    const cors = publicCorsHeaders(request);
    try {
      switch (request.method) {
        case "GET":
          return await answer(request, cors, params);
        case "HEAD":
          return new Response(null, await answer(request, cors, params));
        case "OPTIONS":
          return publicPreflight(request, 204);
        default:
          return methodNotAllowed(request.method, methods, cors);
      }
    } catch (error) {
      onTrouble(error);
      return failureAnswer(
        { status: 500, type: "server_error", code: "error", detail: "A server error occurred.", headers: {} },
        cors,
      );
    }
  };
}

/** Plain: a page in place of a script would be run as one. */
function notFound(cors: Cors): Response {
  return new Response("Not found.\n", {
    status: 404,
    headers: { "Content-Type": "text/plain; charset=utf-8", ...cors },
  });
}
