-- Counts what is in a shard.
-- Gives: time in ms, pending, due, when the first of these was due or '', dispatched, running, dead, number of counts and these by name, then
--        unfinished tasks by generation
local in_streams = 0
for _, lane in ipairs(own('SMEMBERS', prefix .. 'seen')) do
  in_streams = in_streams + own('XLEN', prefix .. 'stream:' .. lane)
end
local runs, dead = call('ZCARD', running), call('ZCARD', prefix .. 'dead')
local due = 0
for _, lane in ipairs(call('ZRANGE', prefix .. 'lanes', '-inf', now_text, 'BYSCORE')) do
  for _, minute in ipairs(own('ZRANGE', prefix .. 'minutes:' .. lane, '-inf', text_of(math.floor(now / 60000)), 'BYSCORE')) do
    due = due + own('ZCOUNT', prefix .. 'due:' .. lane .. ':' .. minute, '-inf', now_text)
  end
end
local first = earliest()
local counts, unfinished_of = own('HGETALL', prefix .. 'counts'), call('HGETALL', prefix .. 'unfinished')
local pending = call('HLEN', tasks) - in_streams - runs - dead
local answer = { now_text, text_of(math.max(0, pending)), text_of(due), first and first <= now and instant_of(first) or '',
  text_of(in_streams), text_of(runs), text_of(dead), text_of(#counts / 2) }
for _, all in ipairs({ counts, unfinished_of }) do
  for _, word in ipairs(all) do
    answer[#answer + 1] = word
  end
end
return answer
