/* How the search ranks what it found: a question that newcomers ask, then the guide, then the rest.
   The numbers are points; a larger number puts a page nearer to the top. */
var Scorer = {
  score: ([place, title, anchor, description, points]) =>
    points + (place.startsWith("questions/") ? 20 : place.startsWith("guide/") ? 4 : 0),
  objNameMatch: 40,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
