(function(r){var p=JSON.parse(document.getElementById("bb-page").textContent),m=new URLSearchParams(location.search).get("machine");
try{m=m||localStorage.getItem("benchbook.machine")}catch(e){}
if(m&&m!==p.reference&&p.machines.indexOf(m)>=0){r.dataset.bbPending="";setTimeout(function(){delete r.dataset.bbPending},2000)}})(document.documentElement)
