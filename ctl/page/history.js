// SPDX-License-Identifier: Apache-2.0
// The rows of the daemon's history, of which the page keeps ROWS_MAX at most: if there are more, every second one is left
// out, again and again, and the page says so.

export const ROWS_MAX = 4096;
const PAGE = 1024; // rows of one answer, at most
const PAGES_MAX = 4; // that are read one after the other, before an overview is read instead

export class History {
  rows = [];
  every = 1; // one row of so many
  total = 0; // rows of the daemon since its start
  oldest = 0; // the first row that the daemon still has
  #next = 0;

  /** Read what is new by get(path). Returns whether there was an answer. */
  async update(get) {
    if (this.total === 0) return this.#begin(await get(`v1/history?limit=${PAGE}`));
    for (let page = 0; page < PAGES_MAX; page++) {
      const answer = await get(`v1/history?since=${this.#next}&limit=${PAGE}`);
      if (!answer) return false;
      if (answer.total < this.#next) return this.#begin(await get(`v1/history?limit=${PAGE}`)); // started again
      this.#append(answer);
      if (answer.rows.length < PAGE) return true;
    }
    return this.#begin(await get(`v1/history?limit=${PAGE}`)); // rows come faster than they are read
  }

  #begin(answer) {
    if (!answer) return false;
    this.rows = [];
    this.every = answer.every;
    this.#append(answer);
    return true;
  }

  #append(answer) {
    const last = this.rows.at(-1);
    if (answer.rows.length > 0 && last && last.number % this.every !== 0) this.rows.pop(); // it was only the latest
    for (const row of answer.rows) if (row.number % this.every === 0) this.rows.push(row);
    const latest = answer.rows.at(-1);
    while (this.rows.length > ROWS_MAX) {
      this.every *= 2;
      this.rows = this.rows.filter((row) => row.number % this.every === 0);
    }
    if (latest && this.rows.at(-1)?.number !== latest.number) this.rows.push(latest);
    [this.total, this.oldest, this.#next] = [answer.total, answer.oldest, answer.next];
  }

  /** The rounds a second between two rows, at the later one. */
  static pace(before, row) {
    const seconds = before ? row.seconds - before.seconds : 0;
    return seconds > 0 ? (row.round - before.round) / seconds : null;
  }
}
