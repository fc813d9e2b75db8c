/** Where in an S3-compatible store something is, or is to be: `s3://bucket/prefix`. */

export interface S3Address {
  bucket: string;
  /** Without a slash at its end. */
  key: string;
}

/** @returns undefined when it cannot be read. */
export function parseS3Url(text: string): S3Address | undefined {
  const match = /^s3:\/\/([a-zA-Z0-9][a-zA-Z0-9.-]+)(?:\/(.*))?$/.exec(text);
  return match === null ? undefined : { bucket: match[1]!, key: (match[2] ?? "").replace(/\/+$/, "") };
}

/** A folder, or a place in S3: any other address, and one that is miswritten, would quietly become a folder of that name. */
export function isPlaceForFiles(text: string): boolean {
  return parseS3Url(text) !== undefined || !/^(?:s3:|[a-z][a-z\d+.-]*:\/\/)/i.test(text);
}
