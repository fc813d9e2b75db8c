/**
 * Files that client libraries load in addition to flags: their configuration, the browser library, and empty lists of
 * unsupported features. Source: contract, sdk-compat 2.4, 4.6 to 4.8; flag-evaluation 15.
 */

import { notFound } from "../../http/http-error.ts";
import { type Call, clientRoutes, type ResponseSpec, type Route, RouteResponse } from "../../http/route.ts";
import { publicFilesProfile } from "../../http/route-profile.ts";
import { anyJson, bool, nullable, object, record, string } from "../../http/schemas.ts";
import { browserFiles, browserLibraryVersion } from "./browser-files.ts";
import { clientConfig } from "./client-config.ts";
import { flagValuesTag } from "./documentation.ts";
import type { EvaluationDeps } from "./ports.ts";
import { fileAnswer, type PublicFile, publicFile } from "./public-files.ts";

type Handle = (call: Call) => RouteResponse | Promise<RouteResponse>;

const configSeconds = 60;
const librarySeconds = 300;
/** A versioned file never changes. */
const versionedSeconds = 365 * 86_400;
const scriptType = "application/javascript; charset=utf-8";
const jsonType = "application/json";
/** The full version, or only the major version. */
const versionShape = /^\d+(?:\.\d+\.\d+[\w.+-]*)?$/;

/** Empty lists of unsupported features, so that libraries continue. */
const emptyLists: readonly (readonly [string, string])[] = [["/api/product_tours", '{"product_tours":[]}']];

const fileRoute = clientRoutes(publicFilesProfile);

const noProject: ResponseSpec = { description: "No project uses this key." };

/** Configuration, library files and empty lists. */
export function assetRoutes({
  projects,
  hasSurveys,
}: Pick<EvaluationDeps, "projects" | "hasSurveys">): Route[] {
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
  const config = (form: keyof ConfigFiles): Handle => {
    return ({ request, params: { token = "" } }) => {
      const project = projects.findByToken(token);
      if (project === undefined) throw notFound();
      const isOn = hasSurveys?.(project.id) ?? false;
      const key = `${isOn} ${token}`;
      let known = configs.get(key);
      if (known === undefined) {
        known = configFiles(token, isOn);
        configs.set(key, known);
      }
      return fileAnswer(request, known[form], configSeconds);
    };
  };
  const library = async (request: Request, path: string): Promise<RouteResponse> => {
    const [name = "", version, ...more] = path.split("/").reverse();
    const isVersioned = version !== undefined;
    if (more.length > 0 || (isVersioned && !versionShape.test(version))) throw notFound();
    const file = await libraryFile(name);
    if (file === undefined) throw notFound();
    const seconds = version === browserLibraryVersion ? versionedSeconds : librarySeconds;
    return fileAnswer(request, file, seconds);
  };
  const scriptAnswers = { 200: { description: "A script." }, 404: noProject };
  return [
    fileRoute("GET", "/array/:token/config", {
      summary: "Get the configuration of the browser and mobile libraries",
      tag: flagValuesTag,
      answers: {
        200: {
          description: "The settings.",
          schema: object({ token: string(), hasFeatureFlags: bool(), siteApps: nullable(anyJson()) }),
          example: { token: "phc_…", hasFeatureFlags: true, siteApps: [] },
        },
        404: noProject,
      },
      handle: config("json"),
    }),
    fileRoute("GET", "/array/:token/config.js", {
      summary: "Get the configuration of the browser library as a script",
      tag: flagValuesTag,
      answers: scriptAnswers,
      handle: config("script"),
    }),
    fileRoute("GET", "/array/:token/array.js", {
      summary: "Get the browser library of a project",
      tag: flagValuesTag,
      answers: scriptAnswers,
      handle({ request, params: { token = "" } }) {
        if (projects.findByToken(token) === undefined) throw notFound();
        return library(request, "array.js");
      },
    }),
    fileRoute("GET", "/static/*", {
      summary: "Get a file of the browser library",
      tag: flagValuesTag,
      answers: { 200: { description: "A script." }, 404: { description: "The file does not exist." } },
      handle: ({ request, params }) => library(request, params["*"] ?? ""),
    }),
    ...emptyLists.map(([path, body]) =>
      fileRoute("GET", path, {
        summary: "Not supported (empty result)",
        tag: flagValuesTag,
        answers: {
          200: { description: "An empty list.", schema: record(), example: JSON.parse(body) as unknown },
        },
        handle: () => RouteResponse.json(body),
      }),
    ),
  ];
}

interface ConfigFiles {
  /** As a JSON document. */
  json: PublicFile;
  /** As a script that stores it where the library looks for it. */
  script: PublicFile;
}

function configFiles(token: string, isOn: boolean): ConfigFiles {
  const text = JSON.stringify(clientConfig(token, isOn));
  const all = "window._POSTHOG_REMOTE_CONFIG";
  // Pages may use several projects: configurations of others are preserved.
  const script = `(function(){${all}=${all}||{};${all}[${JSON.stringify(token)}]={"config":${text},"siteApps":[]};})();\n`;
  return { json: publicFile(jsonType, text), script: publicFile(scriptType, script) };
}

async function readLibraryFile(name: string, path: string): Promise<PublicFile> {
  const contentType = name.endsWith(".js") ? scriptType : "text/plain; charset=utf-8";
  return publicFile(contentType, await Bun.file(path).bytes());
}
