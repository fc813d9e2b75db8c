/**
 * Access to an S3-compatible store.
 *
 * Secrets come from the environment or from a file, never from the command line, which every user of the machine can
 * read.
 */

import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { S3Client } from "bun";
import type { Config } from "../config/settings.ts";
import { parseS3Url, type S3Address } from "../lib/store-urls.ts";
import { DestinationError } from "./errors.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface S3Options {
  /** Empty: from the environment, or AWS. */
  endpoint: string;
  region: string;
  /** A file such as `~/.aws/credentials`; empty: from the environment. */
  credentialsFile: string;
}

export interface S3Access {
  endpoint?: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string;
}

export function getS3Settings(config: Config): S3Options {
  return {
    endpoint: config["backup-s3-endpoint"],
    region: config["backup-s3-region"],
    credentialsFile: config["backup-s3-credentials-file"],
  };
}

/** @throws {DestinationError} credentials are missing. */
export function s3AccessFrom(options: S3Options, environment: Environment): S3Access {
  return {
    endpoint:
      options.endpoint || environment.AWS_ENDPOINT_URL_S3 || environment.AWS_ENDPOINT_URL || undefined,
    region: options.region || environment.AWS_REGION || environment.AWS_DEFAULT_REGION || "us-east-1",
    ...credentials(options, environment),
  };
}

type Credentials = Pick<S3Access, "accessKeyId" | "secretAccessKey" | "sessionToken">;

function credentials({ credentialsFile }: S3Options, environment: Environment): Credentials {
  const own = pair(
    environment.FLAGKEEP_BACKUP_S3_ACCESS_KEY_ID,
    environment.FLAGKEEP_BACKUP_S3_SECRET_ACCESS_KEY,
  );
  if (own !== undefined) return own;
  if (credentialsFile !== "") {
    const found = fromFile(credentialsFile, environment);
    if (found !== undefined) return found;
    throw new DestinationError(
      `${credentialsFile} contains no aws_access_key_id and aws_secret_access_key.`,
      "Write them below a line [default].",
    );
  }
  const standard = pair(environment.AWS_ACCESS_KEY_ID, environment.AWS_SECRET_ACCESS_KEY);
  if (standard !== undefined)
    return { ...standard, sessionToken: environment.AWS_SESSION_TOKEN || undefined };
  const shared = environment.AWS_SHARED_CREDENTIALS_FILE || join(homedir(), ".aws", "credentials");
  const found = fromFile(shared, environment);
  if (found !== undefined) return found;
  throw new DestinationError(
    "S3 credentials are missing.",
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or --backup-s3-credentials-file.",
  );
}

function pair(accessKeyId: string | undefined, secretAccessKey: string | undefined): Credentials | undefined {
  return accessKeyId && secretAccessKey ? { accessKeyId, secretAccessKey } : undefined;
}

/** The profile's credentials in a file of the AWS tools; undefined when the file does not exist. */
function fromFile(path: string, environment: Environment): Credentials | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
  const profile = environment.AWS_PROFILE || "default";
  const values: Record<string, string> = {};
  let isOurs = false;
  for (const line of text.split("\n")) {
    const section = /^\s*\[([^\]]+)\]/.exec(line);
    if (section !== null) isOurs = section[1]!.trim() === profile;
    const entry = /^\s*(aws_\w+)\s*=\s*(\S+)\s*$/.exec(line);
    if (isOurs && entry !== null) values[entry[1]!] = entry[2]!;
  }
  const found = pair(values.aws_access_key_id, values.aws_secret_access_key);
  return found === undefined ? undefined : { ...found, sessionToken: values.aws_session_token };
}

export interface S3Location extends S3Address {
  client: S3Client;
}

/** Opens `s3://bucket/key`. @throws {DestinationError} */
export function s3Location(url: string, access: S3Access): S3Location {
  const address = parseS3Url(url);
  if (address === undefined) {
    throw new DestinationError(`Invalid S3 URL "${url}".`, "Use s3://bucket/prefix.");
  }
  return { ...address, client: new Bun.S3Client({ ...access, bucket: address.bucket }) };
}

const attemptsMax = 3;
const firstPauseMs = 200;

/**
 * Sends a request and retries it: stores throttle only briefly.
 *
 * @param isAnswer whether an error is final, so that a retry would change nothing.
 */
export async function sendS3Request<Answer>(
  ask: () => Promise<Answer>,
  isAnswer: (error: unknown) => boolean = () => false,
): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (error) {
      if (attempt === attemptsMax || isAnswer(error)) throw error;
      await Bun.sleep(firstPauseMs * attempt);
    }
  }
}

const messageLengthMax = 500;

/** One sentence about a store's error. */
export function s3Failure(what: string, error: unknown): DestinationError {
  const { code, message } = error as { code?: string; message?: string };
  // A gateway in front of the store may answer with an HTML page.
  const reported = (message ?? String(error)).replaceAll(/\s+/g, " ").slice(0, messageLengthMax);
  return new DestinationError(`${what} failed (${code ?? "error"}: ${reported}).`);
}
