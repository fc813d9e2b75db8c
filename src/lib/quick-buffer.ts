/** What the runtime's buffers have besides the documented methods, which look at their arguments for longer than they work. */
export type QuickBuffer = Buffer & {
  utf8Write(text: string, at: number): number;
  latin1Slice(start: number, end: number): string;
  utf8Slice(start: number, end: number): string;
};
