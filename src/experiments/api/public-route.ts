/** The running web experiments: every visitor of a site requests them (contract: experiments 1.6). */

import { flagRevision } from "../../accounts/db.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import { fileAnswer, type PublicFile, publicFile } from "../../flags/sdk/public-files.ts";
import { clientRoutes, type Route } from "../../http/route.ts";
import { publicFilesProfile } from "../../http/route-profile.ts";
import { list, object, record, string } from "../../http/schemas.ts";
import { BoundedCache } from "../../lib/bounded-cache.ts";
import { publicWebExperiments } from "../web-experiments.ts";

const cacheSeconds = 60;
const cachedBytesMax = 8 * 1024 * 1024;
const fileRoute = clientRoutes(publicFilesProfile);

/** @param keyError the error for a project key that is missing or unknown */
export function publicWebExperimentRoutes({
  metadata,
  keyError,
}: {
  metadata: Metadata;
  keyError: (token: string) => Error;
}): Route[] {
  const cache = new BoundedCache<object, PublicFile>(
    cachedBytesMax,
    (key, { bytes }) => key.length + bytes.length,
  );
  const owner = {};
  return [
    fileRoute("GET", "/api/web_experiments", {
      summary: "List running web experiments for visitors",
      tag: "Flag evaluation",
      query: object({ token: string({ description: "Project key; also `api_key`." }) }),
      answers: {
        200: {
          description: "The web experiments.",
          schema: object({ experiments: list(record()) }),
          example: { experiments: [{ name: "Buy now", feature_flag_key: "buy-now" }] },
        },
        401: { description: "No project uses this key." },
      },
      handle({ request, query }) {
        const token = query.get("token") || query.get("api_key") || "";
        const project = metadata.projects.findByToken(token);
        if (project === undefined) throw keyError(token);
        const key = `${metadata.changes.mark(flagRevision(project.id))} ${project.id}`;
        let file = cache.get(owner, key);
        if (file === undefined) {
          const experiments = publicWebExperiments(metadata.db, project.id);
          file = publicFile("application/json", JSON.stringify({ experiments }));
          cache.set(owner, key, file);
        }
        return fileAnswer(request, file, cacheSeconds);
      },
    }),
  ];
}
