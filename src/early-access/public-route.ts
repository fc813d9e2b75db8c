/** The early access features that visitors see: every visitor of a site requests them (contract: experiments 1.4). */

import { flagRevision } from "../accounts/db.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { fileAnswer, type PublicFile, publicFile } from "../flags/sdk/public-files.ts";
import { HttpError } from "../http/http-error.ts";
import { clientRoutes, type Route } from "../http/route.ts";
import { publicFilesProfile } from "../http/route-profile.ts";
import { list, object, optional, record, string } from "../http/schemas.ts";
import { BoundedCache } from "../lib/bounded-cache.ts";
import { isReleased, publicFeatures } from "./features.ts";

const cacheSeconds = 60;
const cachedBytesMax = 8 * 1024 * 1024;
const defaultStages = ["beta"];
const fileRoute = clientRoutes(publicFilesProfile);

/** 401: no project uses the key. */
export function publicKeyError(token: string): HttpError {
  return token === ""
    ? new HttpError(
        401,
        "authentication_error",
        "missing_api_key",
        "API key not provided. You can find your project API key in your project settings.",
      )
    : new HttpError(
        401,
        "authentication_error",
        "invalid_api_key",
        "Project API key invalid. You can find your project API key in your project settings.",
      );
}

export function publicFeatureRoutes({ metadata }: { metadata: Metadata }): Route[] {
  const cache = new BoundedCache<object, PublicFile>(
    cachedBytesMax,
    (key, { bytes }) => key.length + bytes.length,
  );
  const owner = {};
  return [
    fileRoute("GET", "/api/early_access_features", {
      summary: "List early access features for visitors",
      description: "Of the stages named by `stage`, which may be repeated; default: beta.",
      tag: "Flag evaluation",
      query: object({
        token: string({ description: "Project key; also `api_key`." }),
        stage: optional(string()),
      }),
      answers: {
        200: {
          description: "The features.",
          schema: object({ earlyAccessFeatures: list(record()) }),
          example: { earlyAccessFeatures: [{ name: "New editor", stage: "beta", flagKey: "new-editor" }] },
        },
        401: { description: "No project uses this key." },
      },
      handle({ request, query }) {
        const token = query.get("token") || query.get("api_key") || "";
        const project = metadata.projects.findByToken(token);
        if (project === undefined) throw publicKeyError(token);
        const sent = query.getAll("stage").filter(isReleased);
        const stages = query.has("stage") ? [...new Set(sent)].sort() : defaultStages;
        const key = `${metadata.changes.mark(flagRevision(project.id))} ${project.id} ${stages.join()}`;
        let file = cache.get(owner, key);
        if (file === undefined) {
          const earlyAccessFeatures = publicFeatures(metadata.db, project.id, stages);
          file = publicFile("application/json", JSON.stringify({ earlyAccessFeatures }));
          cache.set(owner, key, file);
        }
        return fileAnswer(request, file, cacheSeconds);
      },
    }),
  ];
}
