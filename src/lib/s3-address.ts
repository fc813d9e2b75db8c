/** Location in an S3-compatible store: `s3://bucket/prefix`. */

export interface S3Address {
  bucket: string;
  /** Without a trailing slash. */
  key: string;
}

/** @returns undefined when invalid. */
export function parseS3Url(text: string): S3Address | undefined {
  const match = /^s3:\/\/([a-zA-Z0-9][a-zA-Z0-9.-]+)(?:\/(.*))?$/.exec(text);
  return match === null ? undefined : { bucket: match[1]!, key: (match[2] ?? "").replace(/\/+$/, "") };
}

/** A folder, or a location in S3: any other or mistyped URL would silently become a folder of that name. */
export function isFileLocation(text: string): boolean {
  return parseS3Url(text) !== undefined || !/^(?:s3:|[a-z][a-z\d+.-]*:\/\/)/i.test(text);
}
