/** Undocumented methods of the runtime's buffers, without the argument checks that take longer than the work itself. */
export type FastBuffer = Buffer & {
  utf8Write(text: string, at: number): number;
  latin1Slice(start: number, end: number): string;
  utf8Slice(start: number, end: number): string;
};
