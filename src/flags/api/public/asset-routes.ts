/**
 * What client libraries fetch before and beside flags: their configuration, the browser library, and empty lists of
 * features that are not offered here. Source: contract, sdk-compat 2.4, 4.6 to 4.8; flag-evaluation 15.
 */

import { filesDialect } from "../../../http/dialect.ts";
import { notFound } from "../../../http/failure.ts";
import { type Answer, type Call, clientRoutes, Reply, type Route } from "../../../http/route.ts";
import { anyJson, bool, dictionary, nullable, object, text } from "../../../http/shapes.ts";
import { browserFiles, browserLibraryVersion } from "./browser-files.ts";
import { clientConfig } from "./client-config.ts";
import { flagValuesTag } from "./documentation.ts";
import type { EvaluationDependencies } from "./ports.ts";
import { fileAnswer, type PublicFile, publicFile } from "./public-files.ts";

type Handle = (call: Call) => Reply | Promise<Reply>;

const configSeconds = 60;
const librarySeconds = 300;
/** A file under the version it has never changes. */
const versionedSeconds = 365 * 86_400;
const scriptType = "application/javascript; charset=utf-8";
const jsonType = "application/json";
/** Whole, or the major one alone. */
const versionShape = /^\d+(?:\.\d+\.\d+[\w.+-]*)?$/;

/** Answers that say "none of these here", so that libraries go on. */
const emptyLists: readonly (readonly [string, string])[] = [
  ["/api/surveys", '{"surveys":[]}'],
  ["/api/early_access_features", '{"earlyAccessFeatures":[]}'],
  ["/api/web_experiments", '{"experiments":[]}'],
  ["/api/product_tours", '{"product_tours":[]}'],
];

const fileRoute = clientRoutes(filesDialect);

const noProject: Answer = { description: "There is no project with this key." };

/** Configuration, library files and empty lists. */
export function assetRoutes({ projects }: Pick<EvaluationDependencies, "projects">): Route[] {
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
      if (projects.findByToken(token) === undefined) throw notFound();
      let known = configs.get(token);
      if (known === undefined) {
        known = configFiles(token);
        configs.set(token, known);
      }
      return fileAnswer(request, known[form], configSeconds);
    };
  };
  const library = async (request: Request, path: string): Promise<Reply> => {
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
          schema: object({ token: text(), hasFeatureFlags: bool(), siteApps: nullable(anyJson()) }),
          example: { token: "phc_…", hasFeatureFlags: true, siteApps: [] },
        },
        404: noProject,
      },
      handle: config("json"),
    }),
    fileRoute("GET", "/array/:token/config.js", {
      ...{ summary: "Get the configuration of the browser library as a script", tag: flagValuesTag },
      answers: scriptAnswers,
      handle: config("script"),
    }),
    fileRoute("GET", "/array/:token/array.js", {
      ...{ summary: "Get the browser library of a project", tag: flagValuesTag },
      answers: scriptAnswers,
      handle({ request, params: { token = "" } }) {
        if (projects.findByToken(token) === undefined) throw notFound();
        return library(request, "array.js");
      },
    }),
    fileRoute("GET", "/static/*", {
      ...{ summary: "Get a file of the browser library", tag: flagValuesTag },
      answers: { 200: { description: "A script." }, 404: { description: "There is no such file." } },
      handle: ({ request, params }) => library(request, params["*"] ?? ""),
    }),
    ...emptyLists.map(([path, body]) =>
      fileRoute("GET", path, {
        summary: "Not supported (empty result)",
        tag: flagValuesTag,
        answers: {
          200: { description: "An empty list.", schema: dictionary(), example: JSON.parse(body) as unknown },
        },
        handle: () => Reply.json(body),
      }),
    ),
  ];
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
