/** The running surveys: every visitor of a site requests them (contract: experiments 1.5). */

import { flagRevision } from "../accounts/db.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { publicKeyError } from "../early-access/public-route.ts";
import { fileAnswer, type PublicFile, publicFile } from "../flags/sdk/public-files.ts";
import { clientRoutes, type Route } from "../http/route.ts";
import { publicFilesProfile } from "../http/route-profile.ts";
import { list, nullable, object, record, string } from "../http/schemas.ts";
import { BoundedCache } from "../lib/bounded-cache.ts";
import { hasRunningSurvey, publicSurveys } from "./surveys.ts";

const cacheSeconds = 60;
const cachedBytesMax = 8 * 1024 * 1024;
const fileRoute = clientRoutes(publicFilesProfile);

export function publicSurveyRoutes({ metadata }: { metadata: Metadata }): Route[] {
  const cache = new BoundedCache<object, PublicFile>(
    cachedBytesMax,
    (key, { bytes }) => key.length + bytes.length,
  );
  const owner = {};
  return [
    fileRoute("GET", "/api/surveys", {
      summary: "List running surveys for visitors",
      tag: "Flag evaluation",
      query: object({ token: string({ description: "Project key; also `api_key`." }) }),
      answers: {
        200: {
          description: "The surveys.",
          schema: object({ surveys: list(record()), survey_config: nullable(record()) }),
          example: { surveys: [{ name: "Satisfaction", type: "popover" }], survey_config: null },
        },
        401: { description: "No project uses this key." },
      },
      handle({ request, query }) {
        const token = query.get("token") || query.get("api_key") || "";
        const project = metadata.projects.findByToken(token);
        if (project === undefined) throw publicKeyError(token);
        const key = `${metadata.changes.mark(flagRevision(project.id))} ${project.id}`;
        let file = cache.get(owner, key);
        if (file === undefined) {
          const surveys = publicSurveys(metadata.db, project.id);
          file = publicFile("application/json", JSON.stringify({ surveys, survey_config: null }));
          cache.set(owner, key, file);
        }
        return fileAnswer(request, file, cacheSeconds);
      },
    }),
  ];
}

/** Whether a survey of a project is running, read once per revision. */
export function runningSurveys(metadata: Metadata): (projectId: number) => boolean {
  const known = new Map<number, { mark: string; isRunning: boolean }>();
  return (projectId) => {
    const mark = metadata.changes.mark(flagRevision(projectId));
    let found = known.get(projectId);
    if (found?.mark !== mark) {
      found = { mark, isRunning: hasRunningSurvey(metadata.db, projectId) };
      known.set(projectId, found);
    }
    return found.isRunning;
  };
}
